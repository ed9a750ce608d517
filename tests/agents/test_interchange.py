"""Shared scopes out and in again: whole or not at all, by the rules of every other write."""

import io
import json
from pathlib import Path
from typing import Any

import portable_ai_memory as pam
import pytest
from django.core.management import CommandError, call_command

from tests.http.conftest import Clock, World

VALUES: dict[str, Any] = {
    "text": "Run the linter first.",
    "blank": " ",
    "number": 12345678901234567890123,
    "float": -0.0,
    "list": [1, 1.0, {"b": None, "a": "ü\u2028x"}],
    "null": None,
}


def call(name: str, *arguments: Any, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(name, *map(str, arguments), stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def fill(world: World) -> None:
    for key, value in VALUES.items():
        body = {
            "tags": ["ci", "Ünlike"], "metadata": {"outcome": 0.5},
            "provenance": {"detail": "seen", "origin": {"repo": "acme/checkout"}, "confidence": 1e-7},
        }  # fmt: skip
        assert world.agent.write("repo::acme/checkout", key, value, **body).status == 201
    assert world.operator.write("global", "motto", "Ask first.", ttl_seconds=600).status == 201
    assert world.alice.write("me", "theme", "dark").status == 201


def records(world: World, *scopes: str) -> list[Any]:
    """What is stored there, without what names the version."""
    found = []
    for scope in scopes:
        for record in world.operator.get("preferences", query={"scope": scope}).json["results"]:
            left_out = ("revision", "created_at", "updated_at", "seen_count")
            found.append({name: one for name, one in record.items() if name not in left_out})
    return found


@pytest.fixture(params=["jsonl", "portable"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_all_comes_back_as_it_was(world: World, make_world: Any, tmp_path: Path, form: str) -> None:
    fill(world)
    other = make_world()
    text, told = call("export_scopes", world.tenant.slug, format=form)
    assert told == ""
    assert "theme" not in text
    file = tmp_path / "scopes"
    file.write_text(text, "utf-8")

    steps, told = call("import_scopes", other.tenant.slug, file, format=form, dry_run=True)
    assert told == "7 would be stored, 0 stand already, 0 would be left out.\n"
    assert records(other, "global", "repo::acme/checkout") == []
    steps, told = call("import_scopes", other.tenant.slug, file, format=form)
    assert told == "7 stored, 0 stand already, 0 left out.\n"
    assert steps.splitlines()[0] == "+ global/motto"

    before = records(world, "global", "repo::acme/checkout")
    after = records(other, "global", "repo::acme/checkout")
    for one in after:
        assert one["provenance"]["source"] == "import"
        one["provenance"].update(source="agent", actor="agent")
    for one in before:
        one["provenance"].update(source="agent", actor="agent")
    key = lambda one: (one["scope"], one["key"])  # noqa: E731
    assert sorted(after, key=key) == sorted(before, key=key)
    (event,) = other.events("preference.created")[:1]
    assert event.reason == "import of scopes"

    steps, told = call("import_scopes", other.tenant.slug, file, format=form)
    assert told == "0 stored, 7 stand already, 0 left out.\n"


def test_what_stands_is_never_overwritten(world: World, tmp_path: Path, form: str) -> None:
    fill(world)
    text, _ = call("export_scopes", world.tenant.slug, format=form, scope=["global"])
    (tmp_path / "file").write_text(text, "utf-8")
    assert world.operator.write("global", "motto", "Other.", query={"mode": "upsert"}).status == 200
    steps, _ = call("import_scopes", world.tenant.slug, tmp_path / "file", format=form)
    assert steps == "- global/motto: another value stands here\n"
    assert world.operator.read("global", "motto").json["value"] == "Other."


def test_what_expired_meanwhile_stays_out(world: World, frozen: Clock, tmp_path: Path) -> None:
    fill(world)
    text, _ = call("export_scopes", world.tenant.slug, scope=["global"])
    (tmp_path / "file").write_text(text, "utf-8")
    frozen.move(600)
    steps, _ = call("import_scopes", world.tenant.slug, tmp_path / "file")
    assert steps == "- global/motto: its deadline has passed\n"


def test_a_person_has_an_export_of_its_own(world: World, tmp_path: Path, form: str) -> None:
    with pytest.raises(CommandError, match="export of its own"):
        call("export_scopes", world.tenant.slug, format=form, scope=["user::alice"])


def refused(world: World, tmp_path: Path, text: str, **options: Any) -> str:
    (tmp_path / "file").write_text(text, "utf-8")
    err = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(
            "import_scopes", world.tenant.slug, str(tmp_path / "file"), stderr=err, **options
        )
    assert records(world, "project::x", "global") == []
    return f"{err.getvalue()}{caught.value}"


def test_lines_that_were_cut_or_changed(world: World, make_world: Any, tmp_path: Path) -> None:
    source = make_world()
    assert source.operator.write("project::x", "a", "one").status == 201
    assert source.operator.write("project::x", "b", "two").status == 201
    text, _ = call("export_scopes", source.tenant.slug)
    lines = text.splitlines(keepends=True)
    assert "cut: its last line is missing" in refused(world, tmp_path, "".join(lines[:-1]))
    assert "does not fit" in refused(world, tmp_path, "".join([*lines[:1], *lines[2:]]))
    assert "does not fit" in refused(world, tmp_path, text.replace("one", "won"))
    assert "follows the end" in refused(world, tmp_path, text + lines[1])
    assert "line 2 is not JSON" in refused(world, tmp_path, lines[0] + "{\n")
    assert "does not begin" in refused(world, tmp_path, "{}\n")
    assert "cut" in refused(world, tmp_path, "")


def test_every_fault_is_named_and_nothing_stored(world: World, tmp_path: Path) -> None:
    def sealed(*items: dict[str, Any]) -> str:
        import hashlib

        heading = {"format": "consentful-scopes", "version": 1}
        body = "".join(f"{json.dumps(one)}\n" for one in (heading, *items))
        end = {"records": len(items), "sha256": hashlib.sha256(body.encode()).hexdigest()}
        return f"{body}{json.dumps(end)}\n"

    good = {"scope": "project::x", "key": "a", "value": 1}
    told = refused(
        world, tmp_path,
        sealed(
            good,
            {**good, "key": "b/c"},
            {**good, "scope": "user::alice"},
            {"scope": "project::x", "key": "d"},
            good,
            {**good, "key": "e", "provenance": []},
            {**good, "key": "f", "expires_at": "soon"},
            {**good, "key": 7},
        ),
    )  # fmt: skip
    for place in ("line 3 /key: invalid_key", "line 4 /scope: invalid_scope", "line 5 /value:",
                  "line 6 /key:", "line 7 /provenance:", "line 8 /", "line 9 /key:"):  # fmt: skip
        assert place in told, told
    assert told.endswith("Nothing was imported. 7 parts are refused.")
    # What only the catalogue refuses, too.
    told = refused(
        world, tmp_path,
        sealed({**good, "key": "theme", "value": "pink"}, {**good, "key": "policy", "value": 1},
               {**good, "key": "policy2", "value": 1, "expires_at": "2030-01-01T00:00:00Z"}),
    )  # fmt: skip
    assert "invalid_value" in told


# Portable AI Memory --------------------------------------------------------------------------


def test_the_formats_own_validator_takes_it(world: World) -> None:
    fill(world)
    text, _ = call("export_scopes", world.tenant.slug, format="portable")
    store = pam.MemoryStore.model_validate(json.loads(text))
    result = pam.validate_memory_store(store)
    assert result.is_valid, str(result)
    assert not result.warnings, str(result)
    kinds = {memory.content: memory.type for memory in store.memories}
    assert kinds["Run the linter first."] == "fact"
    assert store.integrity is not None
    assert store.integrity.total_memories == 7


def foreign(**changes: Any) -> dict[str, Any]:
    memory = pam.MemoryObject.create(
        id="mem-1", type=pam.MemoryType.FACT, content="Tabs, not spaces.", platform="chatgpt",
        tags=["style"],
    )  # fmt: skip
    store = pam.MemoryStore(
        schema="portable-ai-memory",
        schema_version="1.0",
        owner=pam.Owner(id="me"),
        memories=[memory],
    )
    return {**store.model_dump(mode="json", by_alias=True, exclude_none=True), **changes}


def test_memories_of_another_service(world: World, tmp_path: Path) -> None:
    document = json.dumps(foreign())
    assert "say into which one" in refused(world, tmp_path, document, format="portable")
    (tmp_path / "file").write_text(document, "utf-8")
    call(
        "import_scopes", world.tenant.slug, tmp_path / "file", format="portable", into="project::x"
    )
    record = world.operator.read("project::x", "mem-1").json
    assert record["value"] == "Tabs, not spaces."
    assert record["tags"] == ["style"]
    assert record["provenance"]["detail"] == "Portable AI Memory, chatgpt"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not JSON"),
        ("[]", "no document of Portable AI Memory"),
        (json.dumps({"schema": "portable-ai-memory"}), "no document of Portable AI Memory"),
        (json.dumps(foreign(extra=1)), "no document of Portable AI Memory"),
    ],
)
def test_what_is_no_such_document(world: World, tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(world, tmp_path, text, format="portable", into="project::x")


def test_a_document_that_was_changed(world: World, make_world: Any, tmp_path: Path) -> None:
    source = make_world()
    assert source.operator.write("project::x", "a", "one").status == 201
    text, _ = call("export_scopes", source.tenant.slug, format="portable")
    changed = text.replace('"content": "one"', '"content": "won"')
    assert changed != text
    assert "not valid" in refused(world, tmp_path, changed, format="portable")
    broken = json.loads(text)
    broken["memories"][0]["metadata"]["consentful"]["value"] = 1
    del broken["integrity"]
    assert "not whole" in refused(world, tmp_path, json.dumps(broken), format="portable")

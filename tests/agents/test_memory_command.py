"""Facts of a project on the terminal, as a person types it."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.checkouts import find_scope
from tenants.exceptions import ServiceError
from tests.http.conftest import World


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout, and the working folder of the test."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "feat/Memory")
    git(tmp_path, "remote", "add", "origin", "git@forge.example:Acme/Checkout.git")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def memory(world: World, *arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("memory", "--tenant", world.tenant.slug, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def refused(world: World, *arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        memory(world, *arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    "remote",
    [
        "git@forge.example:Acme/Checkout.git",
        "https://forge.example/acme/checkout",
        "https://forge.example/group/acme/checkout.git/",
        "ssh://git@forge.example:2222/acme/checkout.git",
        "/srv/git/acme/checkout.git",
    ],
)
def test_the_scope_of_a_checkout(checkout: Path, remote: str) -> None:
    git(checkout, "remote", "set-url", "origin", remote)
    assert str(find_scope(checkout)) == "repo::acme/checkout"
    inner = checkout / "src"
    inner.mkdir()
    assert str(find_scope(inner, of_branch=True)) == "branch::acme/checkout::feat/Memory"


def test_where_no_scope_can_be_told(checkout: Path, tmp_path_factory: Any) -> None:
    with pytest.raises(ServiceError, match="Name one with --scope"):
        find_scope(tmp_path_factory.mktemp("bare"))
    git(checkout, "remote", "remove", "origin")
    with pytest.raises(ServiceError, match="Name one with --scope"):
        find_scope(checkout)


def test_a_fact_lives_and_goes(world: World, checkout: Path) -> None:
    out, told = memory(world, "set", "lint", "ruff first", "--tag", "ci", "--ttl", "600")
    created = json.loads(out)
    assert told == "Created.\n"
    assert (created["scope"], created["value"], created["tags"]) == (
        "repo::acme/checkout", "ruff first", ["ci"],
    )  # fmt: skip
    assert created["expires_at"] is not None
    assert created["provenance"]["source"] == "operator"
    assert created["provenance"]["actor"].startswith("terminal:")

    out, told = memory(world, "set", "lint", '{"first": "ruff"}')
    replaced = json.loads(out)
    assert told == "Replaced.\n"
    assert replaced["value"] == {"first": "ruff"}
    assert "changed" in refused(world, "set", "lint", "x", "--revision", created["revision"])
    memory(world, "set", "lint", "7", "--text", "--revision", replaced["revision"])
    out, _ = memory(world, "get", "lint")
    assert json.loads(out)["value"] == "7"
    # The same record over HTTP.
    assert world.operator.read("repo::acme/checkout", "lint").json["value"] == "7"

    memory(world, "--branch", "set", "note", "wip")
    out, told = memory(world, "list")
    assert [json.loads(line)["key"] for line in out.splitlines()] == ["lint"]
    out, _ = memory(world, "stats")
    assert json.loads(out) == {"branch::acme/checkout::feat/Memory": 1, "repo::acme/checkout": 1}

    assert "changed" in refused(world, "delete", "lint", "--revision", created["revision"])
    memory(world, "delete", "lint")
    assert "no live record" in refused(world, "get", "lint")
    (event,) = world.events("preference.deleted")
    assert event.actor.startswith("terminal:")


def test_clear_asks_first(world: World, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        memory(world, "--scope", "project::x", "set", f"k{number}", "1")
    memory(world, "--scope", "project::y", "set", "k", "1")
    monkeypatch.setattr("builtins.input", lambda question: "yes")
    assert refused(world, "--scope", "project::x", "clear") == "Nothing was deleted."
    monkeypatch.setattr("builtins.input", lambda question: "project::x")
    assert memory(world, "--scope", "project::x", "clear")[0] == "3\n"
    assert memory(world, "--scope", "project::x", "clear", "--yes")[0] == "0\n"
    assert world.operator.read("project::y", "k").status == 200


def test_cleanup(world: World, frozen: Any) -> None:
    memory(world, "--scope", "project::x", "set", "short", "1", "--ttl", "1")
    memory(world, "--scope", "project::x", "set", "long", "1")
    frozen.move(1)
    assert memory(world, "cleanup")[0] == "1\n"
    assert [one.key for one in world.events("preference.expired")] == ["short"]


def test_refusals(world: World, checkout: Path) -> None:
    assert "export of its own" in refused(world, "--scope", "user::alice", "list")
    assert "schema" in refused(world, "--scope", "project::x", "set", "theme", "pink")
    assert "1 to" in refused(world, "set", "k", "1", "--ttl", "0")
    assert "32" in refused(world, "set", "k", "1", "--revision", "x")
    assert "key" in refused(world, "set", "a/b", "1").lower()
    # A number that would lose its value is no text.
    assert refused(world, "set", "k", "1e400")
    with pytest.raises(CommandError, match="Say which tenant"):
        call_command("memory", "stats")
    with pytest.raises(CommandError, match="no tenant"):
        call_command("memory", "--tenant", "nobody", "stats")


def test_nobody_is_there_to_be_asked(
    world: World, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory(world, "set", "lint", "ruff first")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert refused(world, "clear") == "Nothing was deleted."
    assert json.loads(memory(world, "get", "lint")[0])["value"] == "ruff first"


def test_a_prefix_is_read_like_a_key(world: World, checkout: Path) -> None:
    memory(world, "set", "caf\u00e9.open", "at eight")
    assert "at eight" in memory(world, "list", "--key-prefix", "cafe\u0301")[0]
    # What a terminal sends that is no UTF-8.
    assert "(/key_prefix)" in refused(world, "list", "--key-prefix", "\udcff")


class Terminal(io.StringIO):
    """Somewhere a person reads."""

    def isatty(self) -> bool:
        return True


def test_names_are_no_markup(world: World, checkout: Path, capsys: Any) -> None:
    memory(world, "--scope", "repo::[/b]", "set", "lint", "ruff first")
    call_command("memory", "--tenant", world.tenant.slug, "stats", stdout=Terminal())
    assert "repo::[/b]" in capsys.readouterr().out


def test_a_terminal_obeys_no_value(world: World, checkout: Path, capsys: Any) -> None:
    memory(world, "set", "lint", "\x9b2J", "--tag", "\u202eci")
    call_command("memory", "--tenant", world.tenant.slug, "list", stdout=Terminal())
    shown = capsys.readouterr().out
    assert "\x9b" not in shown
    assert r"\u009b2J" in shown
    assert "\u202e" not in shown

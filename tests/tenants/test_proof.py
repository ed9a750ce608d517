"""What watchers take along over HTTP: checkpoints, exports that prove themselves, the changes."""

import io
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.management import CommandError, call_command
from django.test import Client

from audit.actors import SYSTEM
from audit.checkpoints import read_checkpoint
from audit.sealing import seal
from audit.signing import as_jwk_set, read_keys, trusted_keys
from preferences.models import Preference
from tenants.models import Tenant
from tenants.proof import trim_trail
from tenants.roles import Role
from tenants.services import create_tenant
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, create_preference
from tests.tenants.test_trail import token_of

type Get = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(settings: Any) -> str:
    key = Ed25519PrivateKey.generate()
    settings.CONSENTFUL_SIGNING_KEY = text = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ).decode()
    return text


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")


@pytest.fixture
def get(tenant: Tenant) -> Get:
    """Ask below the tenant as an auditor, unless another token is given."""
    auditor = token_of(tenant, Role.AUDITOR)

    def ask(path: str, token: str = auditor, method: str = "get") -> Any:
        send = getattr(Client(), method)
        return send(
            f"/api/v1/tenants/{tenant.slug}/{path}", headers={"Authorization": f"Bearer {token}"}
        )

    return ask


def write(tenant: Tenant, *keys: str) -> None:
    with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
        for name in keys:
            create_preference(tenant, name)


def seal_all(tenant: Tenant) -> None:
    """Seal until nothing waits: autovacuum too has transactions."""
    deadline = time.monotonic() + 20
    while True:
        seal(tenant.pk, using="default")
        with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
            if not tenant_events(tenant).filter(seal=None).exists():
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def tenant_events(tenant: Tenant) -> Any:
    from audit.models import Event

    return Event.objects.filter(tenant_id=tenant.pk)


# Checkpoints and keys ----------------------------------------------------------------------------


def test_a_checkpoint_says_where_the_chain_stands_and_is_signed(tenant: Tenant, get: Get) -> None:
    write(tenant, "a", "b")
    seal_all(tenant)
    answered = get("audit/checkpoint")
    assert answered.status_code == 200
    body = answered.json()
    signed = read_checkpoint(body["jws"], trusted_keys())
    for name in ("tenant", "sequence", "hash", "count", "time", "key"):
        assert body[name] == getattr(signed, name)
    assert body["tenant"] == tenant.slug
    assert body["sequence"] == body["count"] == 4  # with the auditor's role
    assert answered["Cache-Control"] == "private, no-store"


def test_whoever_verifies_gets_the_public_keys_without_a_token(get: Get) -> None:
    answered = Client().get("/api/v1/keys")
    assert answered.status_code == 200
    assert answered.json() == as_jwk_set(trusted_keys().values())
    assert "d" not in answered.json()["keys"][0]  # RFC 8037: the private half
    assert Client().post("/api/v1/keys").status_code == 405
    assert Client().options("/api/v1/keys")["Allow"].startswith("GET")
    assert Client().get("/api/v1/keys?x=1").json()["code"] == "validation_error"


def test_where_nothing_is_signed_there_is_no_checkpoint(get: Get, settings: Any) -> None:
    settings.CONSENTFUL_SIGNING_KEY = settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = None
    for path in ("audit/checkpoint", "audit/export"):
        answered = get(path)
        assert (answered.status_code, answered.json()["code"]) == (404, "not_found")
        assert "no signing key" in answered.json()["detail"]
    assert Client().get("/api/v1/keys").json() == {"keys": []}


@pytest.mark.parametrize("path", ["audit/checkpoint", "audit/export", "changes"])
def test_only_watchers_read_them(tenant: Tenant, get: Get, path: str) -> None:
    for role in (Role.MEMBER, Role.AGENT, Role.OPERATOR):
        answered = get(path, token_of(tenant, role))
        assert (answered.status_code, answered.json()["code"]) == (403, "permission_denied")
    both = token_of(tenant, Role.AGENT, Role.OWNER)
    assert get(path, both).status_code == 403
    assert get(path, token_of(tenant, Role.OWNER)).status_code == 200
    assert get(path, "cst_nothing").status_code == 401
    stranger = token_of(create_tenant(slug=f"t{uuid.uuid4().hex[:20]}"), Role.AUDITOR)
    assert get(path, stranger).status_code == 404
    assert get(path, method="post").status_code == 405
    assert get(path, method="head").status_code == 200
    assert get(f"{path}?x=1").json()["code"] == "validation_error"


# Exports -----------------------------------------------------------------------------------------


@pytest.fixture
def exported(tenant: Tenant, get: Get, tmp_path: Path) -> Path:
    """A document of a trail of all sorts: odd characters, a deletion, a refusal, a disclosure."""
    write(tenant, "a", "style\u2028ü", "gone")
    with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
        Preference.objects.filter(tenant_id=tenant.pk, key="a").update(value='"later"')
        Preference.objects.filter(tenant_id=tenant.pk, key="gone").delete()
    get("audit", token_of(tenant, Role.MEMBER))
    seal_all(tenant)
    return download(get, tmp_path)


def download(get: Get, folder: Path, path: str = "audit/export") -> Path:
    answered = get(path)
    assert answered.status_code == 200
    assert answered["Content-Type"] == "application/json"
    file = folder / "export.json"
    file.write_bytes(b"".join(answered.streaming_content))
    return file


def verify(file: Path, *more: object) -> str:
    out, told = io.StringIO(), io.StringIO()
    try:
        call_command("verify_audit", "--file", str(file), *map(str, more), stdout=out, stderr=told)
    except CommandError as refusal:
        return out.getvalue() or str(refusal)
    return told.getvalue().strip()


def test_an_export_proves_itself(exported: Path) -> None:
    events = json.loads(exported.read_text())["events"]
    said = verify(exported).splitlines()
    assert said[0].startswith(f"Links 1 to {len(events)} of the chain of t")
    assert said[1:] == [f"{len(events)} events: nothing found."]
    assert "later" not in exported.read_text()
    assert "brief" not in exported.read_text()


def test_an_export_that_was_written_anew_by_another_program_proves_itself_too(
    exported: Path,
) -> None:
    document = json.loads(exported.read_text())
    for indent in (None, 2):
        exported.write_text(json.dumps(document, indent=indent))
        assert verify(exported).endswith("nothing found.")


def test_it_needs_no_database(exported: Path, tmp_path: Path, key: str) -> None:
    """A process whose database is nowhere, with the public keys alone."""
    import os

    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(as_jwk_set(trusted_keys().values())))
    ran = subprocess.run(
        [sys.executable, "manage.py", "verify_audit", "--file", exported, "--keys", keys],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
        env=os.environ | {
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/nothing", "DATABASE_OWNER_URL": "",
            "DATA_DIR": str(tmp_path / "none"), "DJANGO_SETTINGS_MODULE": "config.settings",
        },
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert "nothing found" in ran.stderr


def change(document: Any, index: int, **columns: Any) -> None:
    document["events"][index]["event"].update(columns)


@pytest.mark.parametrize(
    ("tamper", "code"),
    [
        (lambda d: change(d, 2, action="preference.deleted"), "event_edited"),
        (lambda d: change(d, 2, at="2020-01-01T00:00:00.000000Z"), "event_edited"),
        (lambda d: change(d, 2, changed=["value"]), "event_edited"),
        (lambda d: change(d, 2, key="other"), "event_edited"),
        (lambda d: change(d, 2, actor="eve"), "event_edited"),
        (lambda d: change(d, 2, tenant_id=1), "event_edited"),
        (lambda d: change(d, 2, row_digest=None), "event_edited"),
        (lambda d: d["events"].pop(2), "seal_deleted"),
        (lambda d: d["events"].pop(), "chain_replaced"),
        (lambda d: d["events"].insert(2, d["events"][3]), "seal_deleted"),
        (lambda d: d["events"][2].update(hash="0" * 64), "chain_broken"),
        (lambda d: d.update(checkpoint=None), "checkpoint_forged"),
        (lambda d: d.update(checkpoint=d["checkpoint"][:-4] + "AAAA"), "checkpoint_forged"),
    ],
    ids=[
        "action", "time", "columns", "key", "actor", "tenant", "digest", "left out", "cut short",
        "twice", "hash", "unsigned", "signature",
    ],
)  # fmt: skip
def test_a_document_that_was_changed_is_found_out(
    exported: Path, tamper: Callable[[Any], object], code: str
) -> None:
    document = json.loads(exported.read_text())
    tamper(document)
    exported.write_text(json.dumps(document))
    assert f"{code}\t" in verify(exported)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"format": "consentful-audit-export/1"}',
        '{"format": "x", "events": [], "checkpoint": null}',
        '{"format": "consentful-audit-export/1", "tenant_id": 1, "start": {"sequence": 0,'
        ' "hash": "' + "0" * 64 + '"}, "events": [7], "checkpoint": null}',
        '{"format": "consentful-audit-export/1", "tenant_id": 1, "start": {"sequence": 0,'
        ' "hash": "1"}, "events": [], "checkpoint": null}',
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused_with_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "export.json"
    file.write_text(text)
    said = verify(file)
    assert said.endswith(".")
    assert "\n" not in said


def test_a_document_that_was_cut_short_is_refused(exported: Path) -> None:
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines[:-1]))
    assert verify(exported) == "The document ends before its end: get it again."
    exported.write_text("".join(lines[:3]) + lines[3][:20])
    assert "Line 4" in verify(exported)


@pytest.mark.parametrize("name", ["id", "changed", "record", "subject_id", "at", "cluster"])
def test_a_member_of_another_type_is_no_event(exported: Path, name: str) -> None:
    document = json.loads(exported.read_text())
    for wrong in ({"a": 1}, [7], True):
        document["events"][1]["event"][name] = wrong
        exported.write_text(json.dumps(document))
        assert "Entry 2 of the document is no event" in verify(exported)


def test_keys_that_nobody_trusts_prove_nothing(exported: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    key = Ed25519PrivateKey.generate().public_key()
    other.write_text(json.dumps(as_jwk_set([key])))
    assert "checkpoint_forged" in verify(exported, "--keys", other)
    assert read_keys(other.read_text())
    assert "cannot be read" in verify(exported, "--keys", tmp_path / "nothing")


def test_an_export_is_compared_with_what_was_signed_before(
    tenant: Tenant, get: Get, tmp_path: Path
) -> None:
    write(tenant, "a")
    seal_all(tenant)
    log = tmp_path / "log"
    log.write_text(get("audit/checkpoint").json()["jws"])
    write(tenant, "b")
    seal_all(tenant)
    file = download(get, tmp_path)
    assert verify(file, "--checkpoints", log).endswith("nothing found.")
    log.write_text(get("audit/checkpoint").json()["jws"])
    shorter = json.loads(file.read_text())
    del shorter["events"][-1]
    file.write_text(json.dumps(shorter))
    assert "chain_rolled_back\t" in verify(file, "--checkpoints", log)


def test_an_export_goes_on_after_a_link(tenant: Tenant, get: Get, tmp_path: Path) -> None:
    write(tenant, "a", "b", "c")
    seal_all(tenant)
    file = download(get, tmp_path, "audit/export?after=3")
    document = json.loads(file.read_text())
    assert document["start"]["sequence"] == 3
    assert document["events"][0]["sequence"] == 4
    assert verify(file).endswith("nothing found.")
    assert get("audit/export?after=999").json()["code"] == "not_found"
    for wrong in ("-1", "x", "1.5", "", "٣", "9" * 30):
        answered = get(f"audit/export?after={wrong}")
        assert (answered.status_code, answered.json()["code"]) == (400, "validation_error")
        assert answered.json()["errors"][0]["pointer"] == "/query/after"


def test_a_tenant_whose_chain_is_empty_has_an_export(tmp_path: Path) -> None:
    from audit.exports import write_export

    text = "".join(
        write_export(None, start=(0, "0" * 64), using="default", unit=lambda: pytest.fail("read"))
    )
    file = tmp_path / "export.json"
    file.write_text(text)
    assert json.loads(text)["events"] == []
    assert verify(file) == "0 events: nothing found."


# Changes -----------------------------------------------------------------------------------------


def follow(get: Get, after: int = 0, limit: int = 200) -> Iterator[dict[str, Any]]:
    """Read the feed as a search index would: page by page, from the last sequence seen."""
    url: str | None = f"changes?after={after}&limit={limit}"
    while url:
        page = get(url).json()
        assert set(page) == {"results", "next", "previous"}
        yield from page["results"]
        url = page["next"] and page["next"].partition("/tenants/")[2].partition("/")[2]


def test_changes_come_in_sealed_order_page_by_page(tenant: Tenant, get: Get) -> None:
    write(tenant, *"abcde")
    assert list(follow(get)) == []  # nothing is sealed yet
    seal_all(tenant)
    events = list(follow(get, limit=2))
    assert [event["sequence"] for event in events] == list(range(1, 8))
    assert [event["target"]["key"] for event in events[2:]] == list("abcde")
    assert list(follow(get, after=5)) == events[5:]
    assert list(follow(get, after=7)) == []
    assert list(follow(get, after=10**17)) == []


def test_a_bad_place_is_refused(get: Get) -> None:
    for query in ("after=x", "after=-1", "after=", "after=1&after=2", "limit=0", "limit=201"):
        answered = get(f"changes?{query}")
        assert (answered.status_code, answered.json()["code"]) == (400, "validation_error")


def test_a_follower_misses_nothing_and_sees_nothing_twice_while_writers_run(
    tenant: Tenant, get: Get
) -> None:
    from django.db import connection

    def run_writer(number: int) -> None:
        for index in range(25):
            write(tenant, f"{number}-{index}")
        connection.close()

    def run_sealer() -> None:
        while any(writer.is_alive() for writer in writers):
            seal(tenant.pk, using="default")
        connection.close()

    writers = [threading.Thread(target=run_writer, args=(number,)) for number in range(4)]
    sealer = threading.Thread(target=run_sealer)
    for thread in (*writers, sealer):
        thread.start()
    seen: list[dict[str, Any]] = []
    while sealer.is_alive():
        seen += follow(get, after=seen[-1]["sequence"] if seen else 0, limit=7)
    seal_all(tenant)
    seen += follow(get, after=seen[-1]["sequence"] if seen else 0)
    assert [event["sequence"] for event in seen] == list(range(1, len(seen) + 1))
    keys = [event["target"]["key"] for event in seen if event["action"] == "preference.created"]
    assert sorted(keys) == sorted(f"{number}-{index}" for number in range(4) for index in range(25))


def test_a_follower_that_slept_through_retention_is_told(
    tenant: Tenant, get: Get, tmp_path: Path
) -> None:
    write(tenant, "a", "b")
    seal_all(tenant)
    assert trim_trail(tenant.pk, tenant.slug, keep=timedelta(0), actor=SYSTEM) == 4
    seal_all(tenant)
    answered = get("changes?after=2")
    assert (answered.status_code, answered.json()["code"]) == (400, "validation_error")
    assert "no longer kept" in answered.json()["detail"]
    assert get("changes").json()["results"][0]["sequence"] == 5
    assert list(follow(get, after=4))
    assert get("audit/checkpoint").json()["count"] == get("audit/checkpoint").json()["sequence"] - 4
    file = download(get, tmp_path)
    assert json.loads(file.read_text())["start"]["sequence"] == 4
    assert verify(file).endswith("nothing found.")

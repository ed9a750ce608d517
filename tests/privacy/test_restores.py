"""A real restore: dumped, restored, recognised, refused, brought up to date, proved."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection
from psycopg import sql

from audit.stores import StoreFailed
from privacy.jobs import suppress_all
from privacy.suppressions import configured_list
from tests.conftest import ROOT, connect, run_service
from tests.http.conftest import World
from tests.privacy.dumps import dump, find_lines, run

#: A database of its own: other tests leave rows behind the trail's back, which no restore takes.
pytestmark = pytest.mark.usefixtures("alone", "listed")


@pytest.fixture
def restored(database: str) -> Iterator[str]:
    """The name of a database for a restore, empty."""
    name = f"{database}_restored"
    with connect("owner") as owner:
        owner.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
        owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield name
    with connect("owner") as owner:
        owner.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def manage(database: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a database, with the list in a folder."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
        env=os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": database,
            "TEST_SUPPRESSIONS": str(folder),
        },
    )  # fmt: skip


def ask(url: str, world: World, who: str, path: str, method: str = "GET", **more: Any) -> Any:
    api = getattr(world, who)
    return httpx.request(
        method, f"{url}{api.base}/{path}", headers={"Authorization": f"Bearer {api.token}"}, **more
    )


def test_a_restore_brings_nobody_back(
    world: World, listed: Path, restored: str, tmp_path: Path, owner_does: Callable[[str], None]
) -> None:
    # The person, somebody who withdraws, and somebody of whom one key is forgotten.
    marker = f"zzrestored{world.tenant.pk}"
    key = f"nickname-{marker}"
    assert world.operator.give(marker, "support", evidence="by mail").status == 200
    assert world.operator.write(f"user::{marker}", "reply_style", "brief").status == 201
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "reply_style", "brief").status == 201
    assert world.bob.write("me", key, marker).status == 201
    assert world.bob.write("me", "theme", "dark").status == 201
    dump(tmp_path / "before.dump", kind="custom")

    why = {"reason": "asked by mail"}
    answer = world.operator.post(f"subjects/{marker}/erasures", {}, query=why)
    assert (answer.status, answer.json["status"]) == (201, "done")
    assert world.bob.post("subjects/me/erasures", {"keys": [key]}).status == 201
    assert world.alice.withdraw("me", "support").status == 200
    assert suppress_all() >= 1
    assert suppress_all() == 0
    assert marker not in "".join(file.read_text() for file in listed.iterdir())

    run("pg_restore", "--exit-on-error", "--single-transaction", str(tmp_path / "before.dump"),
        database=restored)  # fmt: skip
    dump(tmp_path / "revived.sql", database=restored)
    assert find_lines(marker, tmp_path / "revived.sql") != []

    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings", "WEB_CONCURRENCY": "1",
        "TEST_DATABASE": restored, "TEST_SUPPRESSIONS": str(listed),
    }  # fmt: skip
    with run_service("--no-housekeeping", **environment) as (url, _):
        assert httpx.get(f"{url}/readyz").status_code == 503
        for who, path in (
            ("alice", "preferences/me/reply_style"),
            ("alice", "subjects/me/data"),
            ("alice", "consents/me"),
            ("alice", "preferences"),
            ("operator", f"preferences/user::{marker}/reply_style?reason=x"),
        ):
            refused = ask(url, world, who, path)
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable"), path
            assert int(refused.headers["Retry-After"]) > 0
        body = {"value": "light"}
        assert ask(url, world, "bob", "preferences/me/k", "PUT", json=body).status_code == 503
        # What is about nobody goes on.
        assert ask(url, world, "alice", "purposes").status_code == 200

        reapplied = manage(restored, listed, "reapply_erasures")
        assert (reapplied.returncode, reapplied.stdout) == (0, "2\t1\n"), reapplied.stderr
        assert httpx.get(f"{url}/readyz").status_code == 200
    dump(tmp_path / "after.sql", database=restored)
    assert find_lines(marker, tmp_path / "after.sql") == []

    again = manage(restored, listed, "reapply_erasures")
    assert (again.returncode, again.stdout) == (0, "0\t0\n")
    with run_service("--no-housekeeping", **environment) as (url, _):
        assert ask(url, world, "bob", "preferences/me/theme").json()["value"] == "dark"
        gone = ask(url, world, "alice", "preferences/me/reply_style")
        assert (gone.status_code, gone.json()["code"]) == (403, "consent_required")
        history = ask(url, world, "alice", "consents/me/support/history").json()["results"]
        assert [one["decision"] for one in history] == ["given", "withdrawn"]
        # Consenting anew opens the gate again, also after the next look at the list.
        body = {"decision": "given", "version": 1}
        assert ask(url, world, "alice", "consents/me/support", "PUT", json=body).status_code == 200
        assert ask(url, world, "alice", "preferences/me/reply_style").status_code == 200
        assert httpx.get(f"{url}/readyz").status_code == 200
    proved = manage(restored, listed, "verify_audit", world.tenant.slug)
    assert proved.returncode == 0, proved.stderr + proved.stdout


def test_nobody_is_refused_where_nothing_was_restored(world: World, listed: Path) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    assert world.alice.post("subjects/me/erasures", {}).json["status"] == "done"
    assert world.alice.write("me", "theme", "dark").status == 201
    assert len(list(listed.iterdir())) == 1


def test_a_list_that_was_altered_is_not_believed(world: World, listed: Path) -> None:
    assert world.alice.post("subjects/me/erasures", {}).json["status"] == "done"
    (file,) = listed.iterdir()
    file.write_text(file.read_text().replace('"kind":"erasure"', '"kind":"withdrawal"'))
    from privacy.restores import watch

    watch.forget()
    assert world.alice.read("me", "theme").outcome == (503, "store_unavailable")
    done = manage(connection.settings_dict["NAME"], listed, "reapply_erasures")
    assert done.returncode == 1
    assert "A line of the list was altered." in done.stderr


def test_a_list_that_fails_leaves_the_erasure_open(
    world: World, settings: Any, tmp_path: Path
) -> None:
    settings.CONSENTFUL_SUPPRESSIONS = ["/bin/false"]
    from privacy.restores import watch

    # Whoever could not look yet does not know: nothing is served.
    watch.forget()
    watch._is_behind = None
    assert world.alice.read("me", "theme").outcome == (503, "store_unavailable")
    watch._is_behind = False
    watch._next = float("inf")
    answer = world.alice.post("subjects/me/erasures", {})
    assert answer.json["status"] == "failed"
    (listing,) = [one for one in answer.json["holders"] if one["holder"] == "suppression_list"]
    assert (listing["status"], listing["reason"]) == ("failed", "StoreFailed")
    watch._is_behind = None
    watch.forget()


def test_a_list_that_fails_is_called_by_its_name(
    world: World, settings: Any, tmp_path: Path
) -> None:
    """An operator who has checkpoints elsewhere must know which of the two is away."""
    (tmp_path / "list").write_text("a file, not a folder")
    words = "The (command for the )?list of what must not return"
    for place in (["/bin/false"], [sys.executable, "-c", "print('x')"], tmp_path / "list"):
        settings.CONSENTFUL_SUPPRESSIONS = place
        kept = configured_list()
        assert kept is not None
        with pytest.raises(StoreFailed, match=words):
            kept.append(1, "line")
            kept.list_logs()


def test_the_hot_path_gains_no_statement(world: World, listed: Path) -> None:
    from django.test.utils import CaptureQueriesContext

    assert world.alice.write("me", "theme", "dark").status == 201
    with CaptureQueriesContext(connection) as captured:
        assert world.alice.read("me", "theme").status == 200
    assert len([one for one in captured if "consentful_unknown" in one["sql"]]) == 0


def test_verify_erasure_checks_a_receipt_against_the_database(
    world: World, listed: Path, tmp_path: Path, superuser: psycopg.Connection[Any], settings: Any
) -> None:
    from django.core.management import CommandError, call_command

    from config.signing import find_signing_key

    settings.CONSENTFUL_SIGNING_KEY = find_signing_key(tmp_path / "keys")
    assert world.alice.write("me", "theme", "dark").status == 201
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    shown = world.alice.get(f"erasures/{reference}/receipt")
    assert shown.status == 200
    assert shown.json["payload"]["erased"]["preferences"] == 1
    assert shown.json["kid"] in {one["kid"] for one in world.alice.get("/api/v1/keys").json["keys"]}
    assert "alice" not in shown.content.decode()
    file = tmp_path / "receipt.jws"
    file.write_text(shown.json["receipt"])
    call_command("verify_erasure", str(file))
    # A record comes back behind everybody's back.
    superuser.execute("UPDATE consentful_consent_entry SET evidence = NULL WHERE false")
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(
        "INSERT INTO consentful_preference (tenant_id, scope, key, subject_id, purpose_id, value, tags,"
        " metadata, source, actor, provenance, seen_count, created_at, updated_at)"
        " SELECT e.tenant_id, 'user::x', 'k', e.subject_id, (SELECT max(id) FROM consentful_purpose"
        " WHERE tenant_id = e.tenant_id), '1', '{}', '{}', 'operator', 'x', '{}', 1, now(), now()"
        " FROM consentful_erasure e WHERE reference = %s",
        [reference],
    )
    superuser.execute("SET session_replication_role = origin")
    with pytest.raises(CommandError, match="1 findings"):
        call_command("verify_erasure", str(file))
    file.write_text(shown.json["receipt"][:-4] + "AAAA")
    with pytest.raises(CommandError, match="cannot be believed"):
        call_command("verify_erasure", str(file))

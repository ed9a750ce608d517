"""What whoever owns the database, the folder of checkpoints or a former key might try."""

import io
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from audit.actors import SYSTEM
from audit.checkpoints import read_log
from audit.exceptions import ProofRefused
from audit.models import Event
from audit.signing import as_pem, trusted_keys
from audit.stores import FolderStore
from audit.verification import verify
from preferences.models import Preference
from tenants.exceptions import ValidationError
from tenants.proof import trim_trail, write_checkpoint
from tenants.trail import list_changes
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World
from tests.audit.conftest import world as make_world
from tests.audit.test_checkpoints import (  # noqa: F401  fixtures
    grow,
    kept,
    key,
    new_key,
    rewrite_chain,
    write,
)
from tests.audit.test_retention import NOTHING_KEPT, trim

pytestmark = pytest.mark.usefixtures("key")


def run(*arguments: object) -> str:
    """Return the findings of `verify_audit`, or what it told where there are none."""
    out, told = io.StringIO(), io.StringIO()
    try:
        call_command("verify_audit", *map(str, arguments), stdout=out, stderr=told)
    except CommandError as refusal:
        return out.getvalue() or str(refusal)
    return told.getvalue()


def snapshot(owner: psycopg.Connection[Any], model: Any, row_id: int) -> None:
    owner.execute(
        "SELECT consentful_snapshot(%s::regclass, %s, %s, '{}')",
        [model._meta.db_table, model.noun, [row_id]],
    )


# Cuts --------------------------------------------------------------------------------------------


def test_a_checkpoint_that_anybody_can_fetch_is_no_leave_to_cut(
    world: World,
    kept: FolderStore,  # noqa: F811
    owner_connection: psycopg.Connection[Any],
) -> None:
    """The owner of the database has every right to call what retention calls, but no key."""
    checkpoint = write(world, kept)
    records = owner_connection.execute(
        "SELECT * FROM consentful_uncovered(%s, %s)", [world.id, checkpoint.sequence]
    ).fetchall()
    for noun, row_id in records:
        table = "consent_entry" if noun == "consent" else noun
        owner_connection.execute(
            "SELECT consentful_snapshot(%s::regclass, %s, %s, '{}')",
            [f"consentful_{table}", noun, [row_id]],
        )
    owner_connection.execute(
        "SELECT consentful_cut(%s, %s, %s, %s, '{}')",
        [world.id, checkpoint.sequence, checkpoint.hash, checkpoint.jws],
    )
    owner_connection.execute("SELECT consentful_drop_cut(%s, 100)", [world.id])
    world.seal()
    assert "cut_forged" in world.codes()


def test_the_cut_of_another_tenant_is_none_of_this_one(world: World, attack: Any) -> None:
    trim(world)
    world.seal()
    other = make_world.__wrapped__()  # type: ignore[attr-defined]
    attack(
        "INSERT INTO consentful_audit_cut (tenant_id, sequence, hash, checkpoint, at)"
        " SELECT %s, sequence, hash, checkpoint, at FROM consentful_audit_cut WHERE tenant_id = %s",
        other.id, world.id,
    )  # fmt: skip
    assert "cut_forged" in other.codes()


def test_nothing_is_cut_that_a_checkpoint_speaks_against(
    world: World,
    kept: FolderStore,  # noqa: F811
    attack: Any,
) -> None:
    """Behind a cut nobody could compare the replaced part with what was signed any more."""
    write(world, kept)
    attack(
        "UPDATE consentful_audit_event SET purpose = 'x' WHERE id = %s", world.events("subject")[0]
    )
    rewrite_chain(world, attack)
    with pytest.raises(ProofRefused, match="replaced"):
        trim_trail(world.id, world.tenant.slug, keep=NOTHING_KEPT, actor=SYSTEM, kept=kept)


def test_the_command_that_cuts_asks_the_checkpoints(
    world: World,
    kept: FolderStore,  # noqa: F811
    settings: Any,
    attack: Any,
) -> None:
    write(world, kept)
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    attack(
        "UPDATE consentful_audit_event SET purpose = 'x' WHERE id = %s", world.events("subject")[0]
    )
    rewrite_chain(world, attack)
    with pytest.raises(CommandError, match="replaced"):
        call_command("trim_audit", world.tenant.slug, keep_days=1, stdout=io.StringIO())


# Rows and snapshots ------------------------------------------------------------------------------


def test_a_snapshot_does_not_cover_up_an_edit(
    world: World, attack: Any, owner_connection: psycopg.Connection[Any]
) -> None:
    """It repeats what the row is, as if it had always been that."""
    row = world.preference.pk
    attack("UPDATE consentful_preference SET value = '\"forged\"' WHERE id = %s", row)
    snapshot(owner_connection, Preference, row)
    world.seal()
    assert world.codes() == {"link_broken"}


def test_no_row_begins_with_a_snapshot_once_the_cut_is_made(
    world: World, attack: Any, owner_connection: psycopg.Connection[Any]
) -> None:
    """Behind a cut a record's first event may be a snapshot, but not one of later."""
    trim(world)
    world.seal()
    assert world.verify() == []
    attack(
        "CREATE TEMP TABLE forged AS SELECT * FROM consentful_preference WHERE id = %s",
        world.preference.pk,
    )
    attack("UPDATE forged SET id = 10^12::bigint + id, key = 'forged'")
    attack("INSERT INTO consentful_preference SELECT * FROM forged")
    snapshot(owner_connection, Preference, 10**12 + world.preference.pk)
    attack("DROP TABLE forged")
    world.seal()
    assert world.codes() == {"link_broken"}


def test_a_capture_function_that_overlooks_a_column_is_found(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    definition = owner_connection.execute(
        "SELECT pg_get_functiondef('consentful_capture_preference'::regproc)"
    ).fetchone()[0]  # type: ignore[index]
    forged = definition.replace("NEW.value::text", "OLD.value::text")
    assert forged != definition
    owner_connection.execute(forged)
    try:
        assert world.codes() == {"trigger_missing"}
    finally:
        owner_connection.execute(definition)
    assert world.codes() == set()


def test_a_capture_function_follows_the_columns_of_its_table(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    """A column that a migration adds is covered as soon as the migrations have ended."""
    owner_connection.execute("ALTER TABLE consentful_preference ADD COLUMN zeal text")
    try:
        call_command("migrate", verbosity=0)
        owner_connection.execute(
            "UPDATE consentful_preference SET zeal = 'much' WHERE id = %s", [world.preference.pk]
        )
        with unit_of_work(tenant_id=world.id, actor=ACTOR):
            assert Event.objects.filter(tenant_id=world.id).latest("pk").changed == ["zeal"]
        assert world.codes() == set()
    finally:
        owner_connection.execute("UPDATE consentful_preference SET zeal = NULL WHERE zeal = 'much'")
        owner_connection.execute("ALTER TABLE consentful_preference DROP COLUMN zeal")
        call_command("migrate", verbosity=0)


@pytest.mark.parametrize("changed", ["{'tags,value'}", "{NULL}", "{''}", "{{'tags','value'}}"])
def test_the_list_of_changed_columns_is_covered_to_the_letter(
    world: World, attack: Any, changed: str
) -> None:
    event = world.events()[1]
    attack(
        "UPDATE consentful_audit_event SET changed = %s WHERE id = %s",
        changed.replace("'", '"'), event,
    )  # fmt: skip
    assert world.codes() == {"event_edited"}


# Logs of checkpoints -----------------------------------------------------------------------------


@pytest.mark.usefixtures("alone")
def test_a_tenant_that_is_gone_with_its_whole_trail_is_missed(
    world: World,
    kept: FolderStore,  # noqa: F811
    settings: Any,
    attack: Any,
) -> None:
    write(world, kept)
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    for model in ("preference", "consent_entry", "consent_state", "purpose", "subject"):
        attack(f"DELETE FROM consentful_{model} WHERE tenant_id = %s", world.id)
    for table in ("event", "seal", "head"):
        attack(f"DELETE FROM consentful_audit_{table} WHERE tenant_id = %s", world.id)
    attack("DELETE FROM consentful_tenant WHERE id = %s", world.id)
    sentence = f"chain_rolled_back\ttenant {world.id}, which has no row\t"
    assert sentence in run()
    log = kept.folder / f"tenant-{world.id}.jws"
    settings.CONSENTFUL_CHECKPOINTS = None
    assert sentence in run("--checkpoints", log)


def test_the_log_of_another_tenant_proves_nothing(
    world: World,
    kept: FolderStore,  # noqa: F811
    settings: Any,
) -> None:
    """Even where all it signed lies behind a cut."""
    other = make_world.__wrapped__()  # type: ignore[attr-defined]
    write(other, kept)
    trim(world)
    world.seal()
    (log,) = kept.folder.iterdir()
    log.rename(kept.folder / f"tenant-{world.id}.jws")
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    assert "checkpoint_forged\t" in run(world.tenant.slug)


def test_a_replaced_key_ends_in_a_log_where_nothing_happens(
    world: World,
    kept: FolderStore,  # noqa: F811
    settings: Any,
) -> None:
    """Else who stole it could go on with the log of every quiet tenant."""
    first = write(world, kept)
    settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = as_pem(next(iter(trusted_keys().values())))
    settings.CONSENTFUL_SIGNING_KEY = new_key()
    second = write(world, kept)
    assert second is not None
    assert (second.sequence, second.previous) == (first.sequence, first.digest)
    assert second.key != first.key
    assert write(world, kept) is None


def test_a_line_that_cannot_be_read_is_not_passed_over(
    world: World,
    kept: FolderStore,  # noqa: F811
    tmp_path: Path,
) -> None:
    write(world, kept)
    grow(world, "a")
    write(world, kept)
    lines = kept.read(world.id)
    log = tmp_path / "log"
    log.write_text(f"{lines[0]}\nx.{lines[1][10:]}\n")
    assert "is none" in run(world.tenant.slug, "--checkpoints", log)


def test_line_ends_and_blank_lines_change_no_log(
    world: World,
    kept: FolderStore,  # noqa: F811
    settings: Any,
) -> None:
    write(world, kept)
    grow(world, "a")
    write(world, kept)
    log = kept.folder / f"tenant-{world.id}.jws"
    log.write_bytes(b"\r\n" + log.read_bytes().replace(b"\n", b"\r\n\r\n"))
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    assert "Compared with 2 checkpoints." in run(world.tenant.slug)
    grow(world, "b")
    write(world, kept)
    assert len(read_log(kept.read(world.id), trusted_keys())) == 3


def test_writers_of_checkpoints_at_once_leave_one_log(
    world: World,
    kept: FolderStore,  # noqa: F811
) -> None:
    def work(number: int) -> None:
        try:
            for index in range(5):
                grow(world, f"{number}-{index}")
                write_checkpoint(world.id, world.tenant.slug, kept=kept)
        except Exception as fault:  # noqa: BLE001  shown below
            faults.append(fault)
        finally:
            connection.close()

    faults: list[Exception] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    write(world, kept)
    assert read_log(kept.read(world.id), trusted_keys())[-1].sequence == 26


# Retention and readers ---------------------------------------------------------------------------


def test_retention_waits_for_a_verification(world: World) -> None:
    """It would find gone what it has not read yet."""
    world.settle()

    def cut() -> None:
        trim_trail(world.id, world.tenant.slug, keep=timedelta(0), actor=SYSTEM)
        connection.close()

    retention = threading.Thread(target=cut)
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        assert verify(world.id, using="default") == []
        retention.start()
        retention.join(4)  # longer than a unit waits for a lock
        assert retention.is_alive()
    retention.join(20)
    assert not retention.is_alive()
    world.seal()
    assert world.verify() == []


def test_a_follower_sees_no_gap_where_retention_overtakes_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place was still kept when it was asked about, and gone when it was read."""
    import tenants.trail

    asked = tenants.trail.last_cut

    def ask_and_cut(tenant_id: int, using: str) -> Any:
        before = asked(tenant_id, using)
        retention = threading.Thread(target=cut)
        retention.start()
        retention.join(20)
        return before

    def cut() -> None:
        trim(world)
        world.seal()
        connection.close()

    monkeypatch.setattr(tenants.trail, "last_cut", ask_and_cut)
    with (
        pytest.raises(ValidationError, match="no longer kept"),
        unit_of_work(tenant_id=world.id, actor=ACTOR),
    ):
        list_changes(tenant_id=world.id, after=2, most=10)

"""Cutting the oldest part of a trail: what goes, what stays provable, and who may do it."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from audit import retention
from audit.actors import SYSTEM
from audit.chains import last_cut
from audit.exceptions import ProofRefused
from audit.models import Cut, Event, Seal
from preferences.models import Preference
from tenants.proof import trim_trail
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World, create_preference, opened
from tests.audit.test_checkpoints import key, new_key  # noqa: F401  a fixture

NOTHING_KEPT = timedelta(0)

pytestmark = pytest.mark.usefixtures("key")


def trim(world: World, keep: timedelta = NOTHING_KEPT) -> int:
    world.settle()
    return trim_trail(world.id, world.tenant.slug, keep=keep, actor=SYSTEM)


def actions(world: World) -> list[str]:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        return list(
            Event.objects.filter(tenant_id=world.id).order_by("pk").values_list("action", flat=True)
        )


def test_what_is_young_stays(world: World) -> None:
    assert trim(world, timedelta(days=1)) == 0
    assert len(actions(world)) == 6


def test_the_rest_verifies_and_every_live_row_is_still_proven(world: World, attack: Any) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        create_preference(world.tenant, "gone")
        Preference.objects.filter(tenant_id=world.id, key="gone").delete()
    assert trim(world) == 8
    # Live: the tenant, the subject, the purpose, the preference, the decision.
    assert sorted(actions(world)) == [
        "consent.snapshot", "preference.snapshot", "purpose.snapshot", "subject.snapshot",
        "tenant.snapshot", "trail.cut",
    ]  # fmt: skip
    world.seal()
    assert world.verify() == []
    # Changes go on from the snapshots.
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(value='"later"')
    world.seal()
    assert world.verify() == []
    attack("UPDATE consentful_purpose SET title = 'x' WHERE tenant_id = %s", world.id)
    assert world.codes() == {"row_edited"}


def test_a_second_cut_goes_further(world: World) -> None:
    assert trim(world) == 6
    world.seal()
    assert trim(world) == 6
    world.seal()
    assert world.verify() == []
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        assert [cut.sequence for cut in Cut.objects.filter(tenant_id=world.id)] == [6, 12]
        assert Seal.objects.filter(tenant_id=world.id).earliest("sequence").sequence == 13


def test_a_cut_that_was_interrupted_is_taken_up_again(world: World) -> None:
    from audit.checkpoints import sign_cut

    with connection.as_owner():
        assert retention.write_snapshots(world.id, 6, actor=SYSTEM, using="default") == 5
        with unit_of_work(tenant_id=world.id, actor=SYSTEM):
            checkpoint = sign_cut(world.id, "x", 6, using="default")
        retention.cut(checkpoint, actor=SYSTEM, using="default")
        with connection.cursor() as cursor:
            cursor.execute("SELECT consentful_drop_cut(%s, 2)", [world.id])
            assert cursor.fetchone() == (2,)
    world.seal()
    assert world.verify() == []
    assert trim(world, timedelta(days=1)) == 4
    assert world.verify() == []


def test_a_trail_with_a_finding_is_not_cut(world: World, attack: Any) -> None:
    attack(
        "UPDATE consentful_audit_event SET purpose = 'x' WHERE id = %s", world.events("subject")[0]
    )
    with pytest.raises(ProofRefused, match="verify_audit finds"):
        trim(world)
    assert len(actions(world)) == 6


def test_the_owner_deletes_nothing_that_no_cut_covers(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    trim(world)
    world.seal()
    for table in ("consentful_audit_event", "consentful_audit_seal", "consentful_audit_cut"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="is refused"):
            owner_connection.execute(f"DELETE FROM {table} WHERE tenant_id = %s", [world.id])


def test_the_login_that_serves_can_cut_nothing(world: World) -> None:
    for call in (
        "consentful_cut(1, 1, '', '', '{}')", "consentful_drop_cut(1, 1)",
        "consentful_uncovered(1, 1)", "consentful_snapshot('consentful_tenant', 'x', '{1}', '{}')",
        "consentful_append_row('x', 'x', '{}', '')",
    ):  # fmt: skip
        with pytest.raises(Exception, match="permission denied for function"):
            with unit_of_work(tenant_id=world.id, actor=ACTOR), connection.cursor() as cursor:
                cursor.execute(f"SELECT {call}")


def test_no_cut_goes_past_a_live_row_nor_names_another_link(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        link = Seal.objects.get(tenant_id=world.id, sequence=6)
    statement = "SELECT consentful_cut(%s, 6, %s, 'x', '{}')"
    with pytest.raises(psycopg.errors.CheckViolation, match="live record"):
        owner_connection.execute(statement, [world.id, link.hash])
    with pytest.raises(psycopg.errors.CheckViolation, match="not the one"):
        owner_connection.execute(statement, [world.id, "0" * 64])


@pytest.mark.parametrize("forged", ["text", "place", "key"])
def test_a_forged_cut_is_found(world: World, attack: Any, settings: Any, forged: str) -> None:
    """Somebody hides the beginning of a trail behind a cut that was never signed."""
    trim(world)
    world.seal()
    if forged == "text":
        attack("UPDATE consentful_audit_cut SET checkpoint = 'x' WHERE tenant_id = %s", world.id)
    elif forged == "place":
        attack("UPDATE consentful_audit_cut SET sequence = 7 WHERE tenant_id = %s", world.id)
    else:
        settings.CONSENTFUL_SIGNING_KEY = new_key()
    assert "cut_forged" in world.codes()


def test_a_prefix_that_is_deleted_without_a_cut_is_found(world: World, attack: Any) -> None:
    attack("DELETE FROM consentful_audit_event WHERE tenant_id = %s", world.id)
    attack("DELETE FROM consentful_audit_seal WHERE tenant_id = %s", world.id)
    assert "chain_rolled_back" in world.codes()


def test_a_row_that_changes_meanwhile_has_its_events_in_order(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    """The snapshot waits for the writer and then speaks of the newer version."""
    import threading

    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(value='"later"')
        waiting = threading.Thread(
            target=owner_connection.execute,
            args=(
                "SELECT consentful_snapshot('consentful_preference', 'preference', %s, '{}')",
                [[world.preference.pk]],
            ),
        )
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(10)
    world.seal()
    assert actions(world)[-2:] == ["preference.replaced", "preference.snapshot"]
    assert world.verify() == []


def test_rows_that_somebody_has_locked_are_waited_for_one_by_one(world: World) -> None:
    """Two batches of writes that lock in another order would else wait in a circle with it."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        others = [create_preference(world.tenant, key).pk for key in ("a", "b", "c")]
    world.seal()
    with opened(world) as second:
        second.execute("SELECT FROM consentful_preference WHERE id = %s FOR UPDATE", [others[1]])
        with connection.as_owner(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT consentful_snapshot('consentful_preference', 'preference', %s, '{}')",
                [[world.preference.pk, *others]],
            )
            (written,) = cursor.fetchone()
        assert set(written) == {world.preference.pk, others[0], others[2]}
        # Its owner changed nothing, so its last event still has to be repeated.
        second.rollback()
        assert trim(world) > 0
    assert actions(world).count("preference.snapshot") == 4
    world.seal()
    assert world.verify() == []


def run(tenant: str, **options: object) -> str:
    out = io.StringIO()
    call_command("trim_audit", tenant, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_the_command_cuts_by_age(world: World, as_owner: Callable[[str], None]) -> None:
    world.settle()
    assert run(world.tenant.slug, keep_days=30) == "0\n"
    clock = "CREATE OR REPLACE FUNCTION consentful_now() RETURNS timestamptz LANGUAGE sql VOLATILE"
    as_owner(f"{clock} AS $$ SELECT clock_timestamp() + interval '31 days' $$")
    try:
        assert run(world.tenant.slug, keep_days=30) == "6\n"
    finally:
        as_owner(f"{clock} PARALLEL SAFE AS $$ SELECT clock_timestamp() $$")
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        assert last_cut(world.id, "default") is not None
    with pytest.raises(CommandError, match="1 to 36500"):
        run(world.tenant.slug, keep_days=0)


def test_the_command_needs_a_key(world: World, settings: Any) -> None:
    settings.CONSENTFUL_SIGNING_KEY = None
    with pytest.raises(CommandError, match="CONSENTFUL_SIGNING_KEY"):
        run(world.tenant.slug, keep_days=1)

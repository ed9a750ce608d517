"""What a superuser does behind the trail's back is found and named; what is allowed is not."""

import io
import re
import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from audit.findings import Finding, Tally
from audit.models import Event, Seal
from audit.sealing import actor_digest, chain_hash, content, seal, target_digest
from audit.services import record_event
from preferences.models import Preference
from tenants import trail
from tenants.models import Tenant
from tenants.services import create_tenant
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World, create_preference, opened

EVENT = "UPDATE consentful_audit_event SET"


def found(world: World, code: str) -> list[Finding]:
    return [finding for finding in world.verify() if finding.code == code]


def test_an_honest_tenant_has_no_finding(world: World) -> None:
    tally = Tally()
    assert world.verify(tally) == []
    # The tenant's row, subject, purpose, preference (and its other version), decision.
    assert (tally.events, tally.rows) == (6, 5)


def test_the_installation_has_no_finding(world: World) -> None:
    tenant = Tenant(pk=0)
    installation = World(tenant, world.subject, world.purpose, world.preference)
    installation.seal_once()
    assert installation.verify() == []


def test_honest_changes_of_every_kind_are_no_finding(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(seen_count=2)
        create_preference(world.tenant, "gone")
        Preference.objects.filter(tenant_id=world.id, key="gone").delete()
    assert world.verify() == []  # unsealed still
    world.seal()
    assert world.verify() == []


@pytest.mark.parametrize(
    "change",
    [
        "action = 'preference.deleted'", "at = at + interval '1 microsecond'", "outcome = 'denied'",
        "subject_id = 1", "actor_id = 'x'", "purpose = 'x'", "changed = '{x}'",
        "transaction = transaction + 1", "cluster = 1", "row_digest = 'x'", "target_digest = 'x'",
        "actor_digest = 'x'", "revision_after = 'x'", "record_id = record_id + 1000000",
    ],
)  # fmt: skip
def test_an_edited_hashed_column_is_found(world: World, attack: Any, change: str) -> None:
    event = world.events()[0]
    attack(f"{EVENT} {change} WHERE id = %s", event)
    assert event in [finding.event_id for finding in found(world, "event_edited")]


@pytest.mark.parametrize(
    "change",
    [
        "subject = 'x'", "scope = 'x'", "key = 'x'", "key = NULL", "on_behalf_of = 'x'",
        "reason = 'x'", "request_id = 'x'", "actor = 'x'", "target_salt = 'x'", "actor_salt = NULL",
        "target_salt = NULL",
    ],
)  # fmt: skip
def test_an_edited_readable_column_is_found(world: World, attack: Any, change: str) -> None:
    event = world.events()[0]
    attack(f"{EVENT} {change} WHERE id = %s", event)
    assert [finding.event_id for finding in world.verify()] == [event]
    assert world.codes() == {"event_edited"}


def test_columns_blanked_together_with_their_salt_are_no_finding(world: World, attack: Any) -> None:
    attack(
        f"{EVENT} target_salt = NULL, subject = NULL, scope = NULL, key = NULL,"
        " on_behalf_of = NULL, reason = NULL, request_id = NULL, actor = NULL, actor_salt = NULL"
        " WHERE id = %s",
        world.events()[0],
    )
    assert world.verify() == []


def test_an_edit_that_mends_its_own_link_breaks_the_next(world: World, attack: Any) -> None:
    event_id = world.events()[0]
    attack(f"{EVENT} purpose = 'x' WHERE id = %s", event_id)
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        link = Seal.objects.select_related("event").get(event_id=event_id)
    mended = chain_hash(link.sequence, link.previous, content(link.event))
    attack("UPDATE consentful_audit_seal SET hash = %s WHERE event_id = %s", mended, link.pk)
    assert world.codes() == {"chain_broken"}


def test_the_last_link_mended_differs_from_the_head(world: World, attack: Any) -> None:
    event_id = world.events("consent")[-1]
    attack(f"{EVENT} purpose = 'x' WHERE id = %s", event_id)
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        link = Seal.objects.select_related("event").get(event_id=event_id)
    mended = chain_hash(link.sequence, link.previous, content(link.event))
    attack("UPDATE consentful_audit_seal SET hash = %s WHERE event_id = %s", mended, link.pk)
    assert world.codes() == {"head_altered"}


def test_a_deleted_event_is_found(world: World, attack: Any) -> None:
    event = world.events()[0]
    attack("DELETE FROM consentful_audit_event WHERE id = %s", event)
    (finding,) = found(world, "event_deleted")
    assert finding.event_id == event
    assert found(world, "link_broken")


def test_an_event_deleted_with_its_link_is_found(world: World, attack: Any) -> None:
    event = world.events("purpose")[0]
    attack("DELETE FROM consentful_audit_seal WHERE event_id = %s", event)
    attack("DELETE FROM consentful_audit_event WHERE id = %s", event)
    (finding,) = found(world, "seal_deleted")
    assert "link" in finding.sentence.lower()


def test_a_link_taken_alone_is_found(world: World, attack: Any) -> None:
    event = world.events("purpose")[0]
    attack("DELETE FROM consentful_audit_seal WHERE event_id = %s", event)
    world.seal()
    assert world.codes() == {"seal_deleted", "event_inserted"}


def insert_copy(attack: Any, event_id: int, **changes: str) -> int:
    """Copy an event under another id, with columns replaced by SQL expressions."""
    columns = [field.column for field in Event._meta.concrete_fields]
    chosen = {"id": "nextval('consentful_audit_event_id_seq')", **changes}
    values = ", ".join(chosen.get(column, f'"{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    statement = (
        f"INSERT INTO consentful_audit_event ({names}) OVERRIDING SYSTEM VALUE"
        f" SELECT {values} FROM consentful_audit_event WHERE id = %s RETURNING id"
    )
    return int(attack(statement, event_id).fetchone()[0])


def mend_digests(world: World, attack: Any, event_id: int) -> None:
    """Give an event the digests that its readable columns ought to have."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        event = Event.objects.get(pk=event_id)
    attack(
        "UPDATE consentful_audit_event SET target_digest = %s, actor_digest = %s WHERE id = %s",
        target_digest(event),
        actor_digest(event),
        event_id,
    )


def test_a_replayed_event_is_found_sealed_or_not(world: World, attack: Any) -> None:
    first = world.events()[0]
    copy = insert_copy(attack, first, transaction="pg_current_xact_id()::text::bigint")
    for _ in range(2):
        (finding,) = found(world, "event_replayed")
        assert (finding.event_id, finding.record) == (copy, "preference")
        assert f"event {first}" in finding.sentence
        world.seal()


def test_a_copy_with_fresh_salts_is_found_by_its_revision(world: World, attack: Any) -> None:
    copy = insert_copy(attack, world.events()[0], actor_salt="'x'")
    mend_digests(world, attack, copy)
    assert copy in [finding.event_id for finding in found(world, "event_replayed")]
    assert not found(world, "event_edited")


def test_an_event_copied_to_another_tenant_is_found_sealed_or_not(
    world: World, attack: Any
) -> None:
    """A refusal speaks of no row that could contradict it: only its digests do."""
    record_event("access.denied", tenant_id=world.id, actor=ACTOR, outcome="denied")
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        event = Event.objects.get(tenant_id=world.id, action="access.denied")
    other = create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")
    there = World(other, world.subject, world.purpose, world.preference)
    assert there.verify() == []
    copy = insert_copy(
        attack,
        event.pk,
        tenant_id=str(other.pk),
        transaction="pg_current_xact_id()::text::bigint",
    )
    for _ in range(2):
        assert {(one.code, one.event_id) for one in there.verify()} == {("event_edited", copy)}
        there.seal()


def test_a_backdated_event_is_found(world: World, attack: Any) -> None:
    first = world.events()[0]
    event = insert_copy(attack, first, id=str(-(10**6) - first))
    world.seal()
    assert event in [finding.event_id for finding in found(world, "event_inserted")]


def test_an_event_of_a_transaction_that_never_was_is_found(world: World, attack: Any) -> None:
    event = insert_copy(attack, world.events()[0], transaction="transaction + 1000000000")
    try:
        assert event in [finding.event_id for finding in found(world, "event_inserted")]
    finally:  # it would keep every tenant's sealer waiting
        attack("DELETE FROM consentful_audit_event WHERE id = %s", event)


def test_an_invented_event_breaks_the_links_of_its_record(world: World, attack: Any) -> None:
    event = insert_copy(
        attack, world.events()[1], revision_before="'a'", revision_after="'b'",
        transaction="pg_current_xact_id()::text::bigint", actor_salt="'s'", target_salt="'s'",
    )  # fmt: skip
    mend_digests(world, attack, event)
    world.seal()
    findings = world.verify()
    assert event in [one.event_id for one in findings if one.code == "link_broken"]
    assert "row_rolled_back" in {one.code for one in findings}


def test_exchanged_places_are_found(world: World, attack: Any) -> None:
    first, second = world.events()
    statement = "UPDATE consentful_audit_seal SET event_id = %s WHERE event_id = %s"
    for after, before in ((-first, first), (first, second), (second, -first)):
        attack(statement, after, before)
    assert {one.event_id for one in found(world, "chain_reordered")} == {first, second}
    assert world.codes() == {"chain_reordered"}


def test_a_rolled_back_tail_is_found_before_and_after_the_next_seal(
    world: World, attack: Any
) -> None:
    """Row, event and link are put back to what they were: the head still knows."""
    before = attack(
        "SELECT value::text, revision, salt FROM consentful_preference WHERE id = %s",
        world.preference.pk,
    ).fetchone()
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(value='"later"')
    assert world.seal() == 1
    event = world.events()[-1]
    attack("DELETE FROM consentful_audit_seal WHERE event_id = %s", event)
    attack("DELETE FROM consentful_audit_event WHERE id = %s", event)
    attack(
        "UPDATE consentful_preference SET value = %s::json, revision = %s, salt = %s WHERE id = %s",
        *before,
        world.preference.pk,
    )
    assert world.codes() == {"chain_rolled_back"}
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        create_preference(world.tenant, "next")
    world.seal()
    assert world.codes() == {"seal_deleted"}


def test_a_head_put_back_is_found(world: World, attack: Any) -> None:
    attack(
        "UPDATE consentful_audit_head SET sequence = sequence - 1 WHERE tenant_id = %s", world.id
    )
    assert world.codes() == {"head_rolled_back"}


def test_a_head_that_is_gone_is_found(world: World, attack: Any) -> None:
    attack("DELETE FROM consentful_audit_head WHERE tenant_id = %s", world.id)
    assert world.codes() == {"head_deleted"}


ROW = "WHERE tenant_id = %s"


@pytest.mark.parametrize(
    ("statement", "noun"),
    [
        (f"UPDATE consentful_preference SET value = '\"x\"' {ROW}", "preference"),
        (f"UPDATE consentful_preference SET expires_at = now() {ROW}", "preference"),
        (f"UPDATE consentful_preference SET revision = 'x' {ROW}", "preference"),
        (f"UPDATE consentful_preference SET salt = 'x' {ROW}", "preference"),
        (f"UPDATE consentful_purpose SET lawful_basis = 'contract' {ROW}", "purpose"),
        (f"UPDATE consentful_subject SET user_id = NULL, external_id = 'x' {ROW}", "subject"),
        (f"UPDATE consentful_consent_entry SET decision = 'refused' {ROW}", "consent"),
        ("UPDATE consentful_tenant SET name = 'x' WHERE id = %s", "tenant"),
    ],
)
def test_an_edited_row_is_found(world: World, attack: Any, statement: str, noun: str) -> None:
    attack(statement, world.id)
    assert [one.record for one in found(world, "row_edited")] == [noun]


@pytest.mark.parametrize(
    ("statement", "noun"),
    [
        (f"DELETE FROM consentful_preference {ROW}", "preference"),
        (f"DELETE FROM consentful_consent_entry {ROW}", "consent"),
        ("DELETE FROM consentful_tenant WHERE id = %s", "tenant"),
    ],
)
def test_a_deleted_row_is_found(world: World, attack: Any, statement: str, noun: str) -> None:
    attack(statement, world.id)
    assert [one.record for one in found(world, "row_deleted")] == [noun]


@pytest.mark.usefixtures("alone")
def test_a_tenant_without_row_is_verified_all_the_same(world: World, attack: Any) -> None:
    attack("DELETE FROM consentful_tenant WHERE id = %s", world.id)
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("verify_audit", stdout=out, stderr=io.StringIO())
    assert f"row_deleted\ttenant {world.id}, which has no row\ttenant {world.id} has no row" in (
        out.getvalue()
    )


def test_a_forged_row_is_found(world: World, attack: Any) -> None:
    forged = attack(
        "INSERT INTO consentful_preference (tenant_id, scope, key, value, tags, metadata, source,"
        " actor, provenance, seen_count, created_at, updated_at, revision, salt)"
        " SELECT tenant_id, 'global', 'forged', value, tags, metadata, source, actor, provenance,"
        " seen_count, created_at, updated_at, revision, salt FROM consentful_preference"
        " WHERE id = %s RETURNING id",
        world.preference.pk,
    ).fetchone()[0]
    (finding,) = world.verify()
    assert (finding.code, finding.record, finding.record_id) == ("row_forged", "preference", forged)
    assert finding.sentence.startswith(f"preference {forged} has no event")


def test_a_row_put_back_to_an_older_version_is_found(world: World, attack: Any) -> None:
    before = attack(
        "SELECT value::text, revision, salt FROM consentful_preference WHERE id = %s",
        world.preference.pk,
    ).fetchone()
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(value='"later"')
    attack(
        "UPDATE consentful_preference SET value = %s::json, revision = %s, salt = %s WHERE id = %s",
        *before,
        world.preference.pk,
    )
    (finding,) = world.verify()
    assert (finding.code, finding.record_id) == ("row_rolled_back", world.preference.pk)


def test_a_deleted_row_put_back_is_found(world: World, attack: Any, superuser: Any) -> None:
    superuser.execute(
        "CREATE TEMP TABLE kept AS SELECT * FROM consentful_preference WHERE id = "
        f"{world.preference.pk}"
    )
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).delete()
    attack("INSERT INTO consentful_preference OVERRIDING SYSTEM VALUE SELECT * FROM kept")
    assert world.codes() == {"row_rolled_back"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE consentful_consent_state SET decision = 'withdrawn' WHERE tenant_id = %s",
        "UPDATE consentful_consent_state SET expires_at = now() WHERE tenant_id = %s",
        "UPDATE consentful_consent_state SET version = 9 WHERE tenant_id = %s",
        "DELETE FROM consentful_consent_state WHERE tenant_id = %s",
    ],
)
def test_a_flipped_consent_state_is_found(world: World, attack: Any, change: str) -> None:
    attack(change, world.id)
    (finding,) = world.verify()
    assert finding.code == "consent_state_differs"
    assert finding.sentence == (
        f"The consent state of subject {world.subject.pk} for purpose {world.purpose.pk} is not the"
        " last entry of the ledger."
    )


def test_a_state_without_entry_is_found(world: World, attack: Any) -> None:
    attack("DELETE FROM consentful_consent_entry WHERE tenant_id = %s", world.id)
    assert world.codes() == {"row_deleted", "consent_state_differs"}


@pytest.mark.parametrize(
    ("table", "trigger"),
    [
        ("consentful_preference", "consentful_revise"),
        ("consentful_preference", "consentful_capture"),
        ("consentful_preference", "consentful_no_truncate"),
        ("consentful_audit_event", "consentful_insert_only"),
        ("consentful_audit_seal", "consentful_insert_only_all"),
        ("consentful_audit_seal", "consentful_follow"),
        ("consentful_consent_entry", "consentful_keep_state"),
    ],
)
def test_a_disabled_trigger_is_found(
    world: World, superuser: Any, table: str, trigger: str
) -> None:
    superuser.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    try:
        (finding,) = world.verify()
    finally:
        superuser.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")
    assert finding.sentence == (
        f"The trigger {trigger} of the table {table} is absent, disabled or altered."
    )
    assert world.verify() == []


def test_no_sentence_holds_a_value(world: World, attack: Any) -> None:
    attack("UPDATE consentful_preference SET value = '\"marker\"' WHERE tenant_id = %s", world.id)
    attack(f"{EVENT} subject = 'marker' WHERE tenant_id = %s", world.id)
    assert "marker" not in repr(world.verify())


def test_a_host_in_another_time_zone_finds_nothing_either(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reconnect() -> None:
        connection.close()
        for name in ("timezone", "timezone_name"):
            connections["default"].__dict__.pop(name, None)

    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "TIME_ZONE", "Asia/Kathmandu")
        reconnect()
        assert world.verify() == []
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('TimeZone')")
            assert cursor.fetchone()[0] == "Asia/Kathmandu"
    reconnect()


# Commands ----------------------------------------------------------------------------------------


def test_the_command_names_findings_alone_on_standard_output(world: World, attack: Any) -> None:
    attack("UPDATE consentful_preference SET value = '\"x\"' WHERE tenant_id = %s", world.id)
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match=r"6 events, 5 rows: 1 findings\.") as refusal:
        call_command("verify_audit", world.tenant.slug, stdout=out, stderr=err)
    assert refusal.value.returncode == 1
    assert out.getvalue() == (
        f"row_edited\t{world.tenant.slug}\tpreference {world.preference.pk} is not what its last"
        " event recorded: it was edited behind the trail's back.\n"
    )


def test_the_command_seals_first_and_says_that_nothing_was_found(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        create_preference(world.tenant, "unsealed")
    world.settle()
    out, err = io.StringIO(), io.StringIO()
    call_command("verify_audit", world.tenant.slug, stdout=out, stderr=err)
    assert out.getvalue() == ""
    assert err.getvalue() == "7 events, 6 rows: nothing found.\n"
    assert world.seal_once() == 0


def test_the_command_tells_what_waits_and_for_which_transaction(world: World) -> None:
    out, err = io.StringIO(), io.StringIO()
    with opened(world) as second:
        row = second.execute("SELECT pg_current_xact_id()::text").fetchone()
        assert row is not None
        second.execute(
            "UPDATE consentful_preference SET seen_count = 2 WHERE id = %s", [world.preference.pk]
        )
        with unit_of_work(tenant_id=world.id, actor=ACTOR):
            create_preference(world.tenant, "waits")
        call_command("verify_audit", world.tenant.slug, stdout=out, stderr=err)
    assert out.getvalue() == ""
    match = re.search(r": 1 events are waiting for transaction (\d+)\.", err.getvalue())
    assert match is not None
    assert int(match[1]) <= int(row[0])
    assert "nothing found" in err.getvalue()


def test_a_chain_that_cannot_go_on_stops_nobody_elses(world: World, attack: Any) -> None:
    head = "consentful_audit_head"
    honest = attack(f"SELECT sequence, hash FROM {head} WHERE tenant_id = %s", world.id).fetchone()
    attack(
        f"UPDATE {head} SET sequence = sequence - 1, hash = (SELECT previous FROM"
        f" consentful_audit_seal s WHERE s.tenant_id = {head}.tenant_id"
        f" AND s.sequence = {head}.sequence) WHERE tenant_id = %s",
        world.id,
    )
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        create_preference(world.tenant, "next")
    world.settle()
    try:
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("verify_audit", world.tenant.slug, stdout=out, stderr=io.StringIO())
        assert {line.split("\t")[0] for line in out.getvalue().splitlines()} == {
            "seal_refused", "head_rolled_back",
        }  # fmt: skip
        later = create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")
        with pytest.raises(CommandError, match=f"{world.tenant.slug}.* cannot go on"):
            call_command("seal_audit", stdout=io.StringIO(), stderr=io.StringIO())
        assert seal(later.pk, using="default") == 0
    finally:
        attack(
            f"UPDATE {head} SET sequence = %s, hash = %s WHERE tenant_id = %s", *honest, world.id
        )
    assert world.seal() == 1
    assert world.verify() == []


def test_an_unknown_tenant_is_one_clear_line() -> None:
    with pytest.raises(CommandError, match=r"There is no tenant nowhere\."):
        call_command("verify_audit", "nowhere")


def test_seal_audit_prints_the_count_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests leave chains behind that cannot go on.
    monkeypatch.setattr(trail, "list_trails", lambda: {world.id: world.tenant.slug})
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        create_preference(world.tenant, "one")
        create_preference(world.tenant, "two")
    world.settle()
    out, err = io.StringIO(), io.StringIO()
    call_command("seal_audit", stdout=out, stderr=err)
    assert (out.getvalue(), err.getvalue()) == ("2\n", "Sealed 2 events.\n")

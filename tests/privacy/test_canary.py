"""C058, C060: after an erasure no byte of a marker is in any table, log line or file."""

import logging
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from tenants.models import Subject
from tenants.roles import Role
from tests.factories import Persona
from tests.http.client import API, put
from tests.http.conftest import World
from tests.privacy.dumps import dump, find_lines
from tests.trails import prove

#: The login itself is the host's: it stays, with its name.
HOSTS_OWN = "public.auth_user"


def found_in_dump(marker: str, folder: Path) -> list[str]:
    file = folder / f"{uuid.uuid4().hex}.sql"
    dump(file)
    return [line for line in find_lines(marker, file) if not line.startswith(f"{HOSTS_OWN}:")]


def fill(world: World, marker: str) -> API:
    """Leave the marker wherever a person, or whoever works for one, can leave a word."""
    person = Persona(world.tenant, marker, Role.MEMBER, Role.OPERATOR)
    api = API(world.tenant.slug, person.token)
    again = {"Idempotency-Key": f"once-{marker}"}
    assert api.give("me", "support", evidence=marker).status == 200
    assert api.give("me", "ads", headers=again).status == 200
    more = {"tags": [marker], "metadata": {marker: marker}, "provenance": {"detail": marker}}
    key = f"nickname-{marker}"
    assert api.write("me", key, marker, headers={"Idempotency-Key": marker}, **more).status == 201
    assert api.write("me", key, {marker: 1}, query={"mode": "upsert"}).status == 200
    assert api.write("me", "tone", marker, ttl_seconds=1).status == 201
    assert (
        api.batch(put("me", f"b-{marker}", marker), headers={"Idempotency-Key": "b"}).status == 200
    )
    assert api.forget("me", f"b-{marker}").status == 204
    # What the person did to others, and to what is nobody's.
    assert api.write("project::x", "k", 1).status == 201
    assert api.write("user::bob", "k", 1).status == 201
    assert api.decide("bob", "ads", "refused", evidence="by mail").status == 200
    # What others did about the person.
    why = {"reason": f"asked about {marker}"}
    assert world.operator.read(f"user::{marker}", key, query=why).status == 200
    assert world.operator.get(f"subjects/{marker}/data", query=why).status == 200
    assert world.operator.write(f"user::{marker}", "staff_note", marker).status == 201
    assert world.operator.give(marker, "ads", evidence=f"{marker} wrote").status == 200
    assert world.bob.read(f"user::{marker}", key).status == 403
    bound = Persona(
        world.tenant, f"agent-{uuid.uuid4().hex[:8]}", Role.AGENT, purposes=("support", "service"),
        on_behalf_of=marker,
    )  # fmt: skip
    agent = API(world.tenant.slug, bound.token)
    assert (
        agent.write("me", f"agent-{marker}", marker, headers={"Idempotency-Key": "a"}).status == 201
    )
    assert agent.write("project::y", "k", 1).status == 201
    subject = Subject.objects.get(tenant=world.tenant, external_id=marker)
    LogEntry.objects.create(
        user=world.personas["operator"].user, action_flag=CHANGE, object_repr=marker,
        content_type=ContentType.objects.get_for_model(Subject), object_id=str(subject.pk),
        change_message=f"renamed to {marker}",
    )  # fmt: skip
    return api


@pytest.fixture
def marker() -> str:
    return f"zzcanary{uuid.uuid4().hex[:12]}"


def test_C058_no_byte_of_a_forgotten_person_is_left(
    world: World, marker: str, tmp_path: Path, listed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api = fill(world, marker)
    before = found_in_dump(marker, tmp_path)
    # The control: it was everywhere.
    tables = {line.partition(":")[0] for line in before}
    assert tables >= {
        f"public.consentful_{name}"
        for name in ("preference", "consent_entry", "subject", "token", "audit_event")
    } | {"public.django_admin_log", "public.consentful_idempotency_record"}
    answer = api.post("subjects/me/erasures", {})
    assert (answer.status, answer.json["status"]) == (201, "done")
    assert marker not in answer.content.decode()
    assert found_in_dump(marker, tmp_path) == []
    assert marker not in caplog.text
    assert [one for one in listed.rglob("*") if one.is_file() and marker in one.read_text()] == []
    assert [one for one in listed.rglob("*") if one.is_file()] != []
    prove(world.tenant)


def test_C058_an_operator_forgets_a_person_without_leaving_the_name(
    world: World, marker: str, tmp_path: Path
) -> None:
    fill(world, marker)
    why = {"reason": f"a letter of {marker}"}
    answer = world.operator.post(f"subjects/{marker}/erasures", {}, query=why)
    assert (answer.status, answer.json["status"]) == (201, "done")
    assert found_in_dump(marker, tmp_path) == []
    (created,) = world.events("erasure.created")
    assert (created.actor, created.reason) == ("operator", "a letter of [the person]")
    prove(world.tenant)


def test_by_key_no_byte_of_the_key_and_its_value_is_left(
    world: World, marker: str, tmp_path: Path
) -> None:
    key, value = f"nickname-{marker}", f"value-{marker}"
    assert world.alice.write("me", key, value, headers={"Idempotency-Key": "k"}).status == 201
    assert world.alice.write("me", "theme", "dark").status == 201
    assert world.operator.read("user::alice", key, query={"reason": "asked"}).status == 200
    answer = world.alice.post("subjects/me/erasures", {"keys": [key]})
    assert (answer.status, answer.json["status"]) == (201, "done")
    assert answer.json["extent"] == {
        "everything": False, "keys": 1, "purposes": None, "written_until": None,
    }  # fmt: skip
    assert found_in_dump(marker, tmp_path) == []
    assert world.alice.read("me", "theme").json["value"] == "dark"
    prove(world.tenant)


def test_C060_export_and_erasure_cover_the_same(world: World, marker: str) -> None:
    api = fill(world, marker)
    shown: dict[str, Any] = api.get("subjects/me/data").json
    assert shown["preferences"]
    answer = api.post("subjects/me/erasures", {})
    assert answer.status == 201
    for one in answer.json["holders"]:
        assert one["status"] in ("done", "nothing_found", "exempt", "not_recallable"), one
        # What is kept is named with its reason.
        assert not one["kept"] or one["ground"], one
    left = api.get("subjects/me/data").json
    assert left["preferences"] == []
    assert [one["history"] for one in left["consents"]] == [[]] * len(left["consents"])

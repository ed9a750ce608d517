"""Catalogues from files: what is refused whole, and that nothing of it stays."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.actors import SYSTEM
from preferences.catalog import load_catalog
from preferences.models import Definition
from tenants.exceptions import BadRequest, InvalidKey, ServiceError, ValidationError
from tenants.models import Subject, Tenant
from tenants.roles import Role
from tenants.services import create_tenant, grant_role
from tenants.tokens import issue_token
from tenants.units import unit_of_work
from tests.factories import CATALOG, make_persona, make_tenant, make_user, unique

PADDED = [
    "theme\n",
    " theme",
    "theme ",
    "\ttheme",
    "theme\u00a0",
    "the\nme",
    "a/b",
    ".",
    "",
    "a\u200bb",
]


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(slug=unique("t"))


def keys_of(tenant: Tenant) -> list[str]:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return list(Definition.objects.filter(tenant=tenant).values_list("key", flat=True))


def catalog_with(*definitions: Any, **changes: Any) -> dict[str, Any]:
    first = CATALOG["definitions"][0]
    more = [{**first, "key": one} if isinstance(one, str) else one for one in definitions]
    return {**copy.deepcopy(CATALOG), "definitions": [first, *more], **changes}


@pytest.mark.parametrize("key", PADDED)
def test_C015_keys_of_a_catalogue_are_not_trimmed(tenant: Tenant, key: str) -> None:
    with pytest.raises(InvalidKey):
        load_catalog(tenant=tenant, catalog=catalog_with(key))
    assert keys_of(tenant) == []


@pytest.mark.parametrize("slug", ["support\n", " support", "support ", "Supp ort"])
def test_C015_purposes_of_a_catalogue_are_not_trimmed(tenant: Tenant, slug: str) -> None:
    purposes = [{**CATALOG["purposes"][0], "slug": slug}]
    with pytest.raises(ValidationError):
        load_catalog(tenant=tenant, catalog={"purposes": purposes})
    with pytest.raises(ValidationError):
        load_catalog(
            tenant=tenant, catalog=catalog_with({**CATALOG["definitions"][0], "purpose": slug})
        )


@pytest.mark.parametrize(
    "twins", [("again", "again"), ("caf\u00e9", "cafe\u0301"), ("\u212b", "A\u030a")]
)
def test_C103_a_key_stands_once_in_whatever_form(tenant: Tenant, twins: tuple[str, str]) -> None:
    with pytest.raises(ValidationError, match="twice") as refusal:
        load_catalog(tenant=tenant, catalog=catalog_with(*twins))
    assert refusal.value.errors[0].pointer == "/definitions/2/key"
    assert keys_of(tenant) == []


def test_C103_a_purpose_and_a_notice_stand_once(tenant: Tenant) -> None:
    purpose = CATALOG["purposes"][0]
    with pytest.raises(ValidationError, match="twice"):
        load_catalog(tenant=tenant, catalog={"purposes": [purpose, purpose]})
    notices = [{"version": 1, "locale": "en", "text": text} for text in ("One.", "Two.")]
    with pytest.raises(ValidationError, match="another text"):
        load_catalog(tenant=tenant, catalog={"purposes": [{**purpose, "notices": notices}]})
    with pytest.raises(ServiceError):
        read_file(tenant, b'{"purposes": [], "purposes": []}')


def read_file(tenant: Tenant, raw: bytes) -> None:
    from tenants.documents import read

    load_catalog(tenant=tenant, catalog=read(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b'{"purposes": {}}', b'{"purpose": []}', b"\xff",
        b'\xef\xbb\xbf{"purposes": []}', b'{"definitions": [{"key": "a", "purpose": "none"}]}',
        b'{"undeclared": {"user": true}}', b'{"undeclared": {"planet": true}}',
        b'{"undeclared": {"user": "none"}}',
    ],
)  # fmt: skip
def test_a_file_that_is_no_catalogue_is_one_clear_line(
    tenant: Tenant, tmp_path: Path, raw: bytes
) -> None:
    file = tmp_path / "catalog.json"
    file.write_bytes(raw)
    with pytest.raises(CommandError) as refusal:
        call_command("load_catalog", tenant.slug, str(file))
    assert "\n" not in str(refusal.value).strip()
    assert keys_of(tenant) == []


def test_loading_again_changes_nothing(tenant: Tenant) -> None:
    first = load_catalog(tenant=tenant, catalog=CATALOG)
    assert first.added
    # As a file says it again, with members in another order.
    again = load_catalog(tenant=tenant, catalog=json.loads(json.dumps(CATALOG, sort_keys=True)))
    assert again.lines() == []


@pytest.mark.parametrize("subject", ["alice\n", " alice", "alice ", "a::b", "a/b", ""])
def test_C015_subjects_are_not_trimmed_on_their_way_in(tenant: Tenant, subject: str) -> None:
    load_catalog(tenant=tenant, catalog=CATALOG)
    user = make_user(unique("u"))
    with pytest.raises(BadRequest):
        grant_role(tenant=tenant, user=user, role=Role.MEMBER, subject=subject)
    agent = make_persona(tenant, "agent").user
    with pytest.raises(BadRequest):
        issue_token(user=agent, tenant=tenant, on_behalf_of=subject)
    assert not Subject.objects.filter(tenant=tenant).exists()


@pytest.mark.parametrize(
    ("transitions", "pointer"),
    [
        ({}, ""), ([], ""), ("queued", ""), ({"queued": "running"}, "/queued"),
        ({"queued": None}, "/queued"), ({"queued": [1]}, "/queued"), ({"": ["a"]}, "/"),
        ({"a": ["x" * 65]}, "/a"), ({"a": ["b", "b"]}, "/a"), ({"a/b": [""]}, "/a~1b"),
        ({str(number): [] for number in range(65)}, ""),
    ],
)  # fmt: skip
def test_steps_that_are_none_are_refused(transitions, pointer):
    tenant = make_tenant()
    definition = {"key": "task", "purpose": "service", "transitions": transitions}
    with pytest.raises(ValidationError) as refused:
        load_catalog(tenant=tenant, catalog={**CATALOG, "definitions": [definition]})
    assert refused.value.errors[0].pointer == f"/definitions/0/transitions{pointer}"


def test_changed_steps_are_a_change_and_the_same_are_none():
    tenant = make_tenant()
    definition = {"key": "task", "purpose": "service", "transitions": {"a": ["b"], "b": []}}
    catalog = {**CATALOG, "definitions": [*CATALOG["definitions"], definition]}
    assert load_catalog(tenant=tenant, catalog=catalog).lines() == ["add definition task"]
    definition["transitions"] = {"b": [], "a": ["b"]}
    assert load_catalog(tenant=tenant, catalog=catalog).lines() == []
    definition["transitions"] = None
    assert load_catalog(tenant=tenant, catalog=catalog).lines() == ["change definition task"]

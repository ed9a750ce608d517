"""Who may give rights, and how a person becomes known: the services themselves, whoever calls."""

import pytest

from audit.actors import SYSTEM
from tenants.callers import find_caller
from tenants.exceptions import InvalidScope, PermissionDenied, ValidationError
from tenants.models import Subject
from tenants.roles import Role
from tenants.services import check_owner, create_subject
from tests.factories import Persona, make_tenant, make_user, unique


@pytest.fixture(scope="module")
def tenant(database):
    return make_tenant({})


def caller(tenant, *roles):
    persona = Persona(tenant, unique("u"), *roles)
    return find_caller(tenant=tenant.slug, user_id=str(persona.user.pk))


def test_owners_alone_give_rights(tenant):
    check_owner(caller(tenant, Role.OWNER))
    check_owner(caller(tenant, Role.OWNER, Role.MEMBER))
    for roles in (
        (Role.OPERATOR,), (Role.AUDITOR,), (Role.MEMBER, Role.OPERATOR),
        (Role.OWNER, Role.AGENT),  # an agent's credential stays an agent's
    ):  # fmt: skip
        with pytest.raises(PermissionDenied):
            check_owner(caller(tenant, *roles))


def test_a_person_is_made_once_and_has_one_login(tenant):
    name, user = unique("p"), make_user(unique("u"))
    first = create_subject(tenant=tenant, external_id=name, actor=SYSTEM)
    again = create_subject(tenant=tenant, external_id=name, user=user, actor=SYSTEM)
    assert (again.pk, again.user_id) == (first.pk, user.pk)
    with pytest.raises(ValidationError):
        create_subject(tenant=tenant, external_id=name, user=make_user(unique("u")), actor=SYSTEM)
    with pytest.raises(ValidationError):
        create_subject(tenant=tenant, external_id=unique("p"), user=user, actor=SYSTEM)
    with pytest.raises(ValidationError):
        create_subject(tenant=tenant, external_id="me", actor=SYSTEM)
    with pytest.raises(InvalidScope):
        create_subject(tenant=tenant, external_id="a/b", actor=SYSTEM)
    assert Subject.objects.filter(tenant=tenant, external_id=name).count() == 1

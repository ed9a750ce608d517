"""Tenants, subjects and roles: who is there, and who may act."""

from typing import Any

from django.contrib.auth.models import Permission

from audit.actors import SYSTEM, Actor
from tenants.callers import Caller
from tenants.conf import resolve_subject
from tenants.exceptions import NotFound, PermissionDenied, ValidationError
from tenants.models import SLUG, Subject, Tenant, TenantUserPermission
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import unit_of_work


def create_tenant(*, slug: str, name: str = "", actor: Actor = SYSTEM) -> Tenant:
    """
    Create a tenant.

    Raises:
        ValidationError: the slug is malformed or taken.
    """
    if not SLUG.regex.match(slug):  # type: ignore[union-attr]
        raise ValidationError(f"A slug has {SLUG.message}", pointer="/slug")
    with unit_of_work(tenant_id=0, actor=actor):
        tenant, is_created = Tenant.objects.get_or_create(slug=slug, defaults={"name": name[:200]})
    if not is_created:
        raise ValidationError(f"There is a tenant {slug} already.", pointer="/slug")
    return tenant


def get_tenant(*, slug: str) -> Tenant:
    """
    Return a tenant by its slug.

    Raises:
        NotFound: there is none.
    """
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise NotFound(f"There is no tenant {slug}.")
    return tenant


def grant_role(
    *, tenant: Tenant, user: Any, role: Role, subject: str | None = None, actor: Actor = SYSTEM
) -> None:
    """
    Give a user a role in a tenant, in addition to those it has.

    Args:
        subject: external id of the person that the user is. A member's, unless it has one
            already, is what the host's resolver says, else its user name.

    Raises:
        ValidationError: that person is another login's, or this login is another person.
    """
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        known = Subject.objects.filter(tenant=tenant, user=user).first()
        if subject is None and role is Role.MEMBER and known is None:
            subject = resolve_subject(str(user.pk), tenant.slug) or user.get_username()
        if subject is not None:
            _link_subject(tenant, user, _check_subject(subject), known)
        TenantUserPermission.objects.get_or_create(
            permission=_permission(role), user=user, content_object=tenant
        )


def revoke_role(*, tenant: Tenant, user: Any, role: Role, actor: Actor = SYSTEM) -> None:
    """
    Take a role from a user. What it stands for as a person stays.

    Raises:
        NotFound: the user does not have the role.
    """
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        grants = TenantUserPermission.objects.filter(
            permission=_permission(role), user=user, content_object=tenant
        )
        if not grants.delete()[0]:
            raise NotFound(f"{user.get_username()} is no {role.value} of {tenant.slug}.")


def create_subject(*, tenant: Tenant, external_id: str, user: Any = None, actor: Actor) -> Subject:
    """
    Make a person known before anything is stored about them; a known one gets the login.

    Raises:
        InvalidScope, ValidationError: the id is malformed, or is another login's.
    """
    external_id = _check_subject(external_id)
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        if user is None:
            return Subject.objects.get_or_create(tenant=tenant, external_id=external_id)[0]
        known = Subject.objects.filter(tenant=tenant, user=user).first()
        _link_subject(tenant, user, external_id, known)
        return Subject.objects.get(tenant=tenant, external_id=external_id)


def check_owner(caller: Caller) -> None:
    """
    Refuse whoever is no owner: owners alone give and take roles, purposes and tokens.

    An operator that could would make itself an owner; nothing stands above an owner.

    Raises:
        PermissionDenied: the caller is no owner, or an agent whatever other roles it has.
    """
    if Role.OWNER not in caller.roles or not caller.is_steward:
        raise PermissionDenied("Only an owner of this tenant gives and takes rights.")


def _link_subject(tenant: Tenant, user: Any, external_id: str, known: Subject | None) -> None:
    if known is not None and known.external_id != external_id:
        raise ValidationError(
            f"{user.get_username()} is the person {known.external_id} there already.",
            pointer="/subject",
        )
    person, _ = Subject.objects.get_or_create(tenant=tenant, external_id=external_id)
    if person.user_id not in (None, user.pk):
        raise ValidationError(f"The person {external_id} has another login.", pointer="/subject")
    if person.user_id is None:
        Subject.objects.filter(pk=person.pk).update(user=user)


def _check_subject(external_id: str) -> str:
    if external_id == "me":
        raise ValidationError(
            "Nobody can be called me: the word stands for the caller.", pointer="/subject"
        )
    return Scope.of_subject(external_id, creating=True).name


def _permission(role: Role) -> Permission:
    return Permission.objects.get(
        codename=role.codename, content_type__app_label=Tenant._meta.app_label
    )

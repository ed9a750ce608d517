"""Guardians: who acts for a person that does not act alone, with what mandate and until when."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from audit.actors import Actor
from tenants.callers import Caller
from tenants.exceptions import NotFound, PermissionDenied, ValidationError
from tenants.models import Guardianship, Subject
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import store, unit_of_work


def grant_guardianship(
    *,
    tenant_id: int,
    username: str,
    subject: str,
    evidence: str,
    expires_at: datetime | None = None,
    actor: Actor,
) -> Guardianship:
    """
    Let a login act for one person, or change the mandate with which it does.

    Args:
        evidence: the paper that says so; at most 2 KiB.
        expires_at: when it ends by itself, as on the day a child comes of age.

    Raises:
        NotFound: no login of this name has a role in the tenant.
        ValidationError: there is no evidence, the deadline has passed, or the login is that person.
    """
    subject = Scope.of_subject(subject, creating=True).name
    if not 1 <= len(evidence.strip()) <= len(evidence.encode()) <= 2048:
        raise ValidationError("Evidence has 1 to 2048 bytes.", pointer="/evidence")
    with unit_of_work(tenant_id=tenant_id, actor=actor, subjects=[subject]):
        user = _user_of(tenant_id, username)
        with store().cursor() as cursor:
            cursor.execute(
                "SELECT consentful_ensure_subject(%s, %s), coalesce(%s::timestamptz > consentful_now(),"
                " true) AND coalesce(%s::timestamptz < '9999-12-31 00:00:00+00', true)",
                [tenant_id, subject, expires_at, expires_at],
            )
            subject_id, is_ahead = cursor.fetchone()
        if not is_ahead:
            raise ValidationError("The deadline must lie in the future.", pointer="/expires_at")
        if Subject.objects.filter(tenant=tenant_id, pk=subject_id, user=user).exists():
            raise ValidationError("Nobody is their own guardian.", pointer="/username")
        return Guardianship.objects.update_or_create(
            tenant_id=tenant_id, user=user, subject_id=subject_id,
            defaults={"evidence": evidence, "expires_at": expires_at},
        )[0]  # fmt: skip


def end_guardianship(*, tenant_id: int, username: str, subject: str, actor: Actor) -> None:
    """
    Let a login act for a person no longer.

    Raises:
        NotFound: it does not.
    """
    name = username if "\x00" not in username else ""
    with unit_of_work(tenant_id=tenant_id, actor=actor, subjects=[subject]):
        found = Guardianship.objects.filter(
            tenant_id=tenant_id, subject__tenant_id=tenant_id, subject__external_id=subject,
            **{f"user__{get_user_model().USERNAME_FIELD}": name},
        )  # fmt: skip
        if not found.delete()[0]:
            raise NotFound("This login is no guardian of that person.")


def list_guardians(*, tenant_id: int, subject: str) -> Sequence[Guardianship]:
    """Return who may act for a person, oldest first, lapsed ones too. Inside a unit of work."""
    return list(
        Guardianship.objects.filter(
            tenant_id=tenant_id, subject__tenant_id=tenant_id, subject__external_id=subject
        )
        .select_related("user")
        .order_by("pk")
    )


def list_wards(caller: Caller) -> Sequence[str]:
    """Return for whom `caller` may act now, in the order of their names; for most that is nobody."""
    if not _may_act(caller):
        return ()
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        names = _in_force(caller).values_list("subject__external_id", flat=True)
        return sorted(name for name in names if not caller.stands_for(name))


def act_for(caller: Caller, subject: str) -> Caller:
    """
    Return `caller` as the guardian of `subject` where it is one now; else unchanged.

    As a guardian it stands for that person and for nobody else, and the trail names both.
    """
    if caller.stands_for(subject) or not _may_act(caller):
        return caller
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        mandate = (
            _in_force(caller)
            .filter(subject__external_id=subject)
            .values_list("evidence", flat=True)
            .first()
        )
    if mandate is None:
        return caller
    return replace(caller, subject=subject, on_behalf_of=subject, mandate=mandate)


def _may_act(caller: Caller) -> bool:
    """Whether a mandate would count: a steward acts for anybody without one, an agent for nobody."""
    return Role.MEMBER in caller.roles and not caller.is_agent and not caller.is_steward


def _in_force(caller: Caller) -> QuerySet[Guardianship]:
    return Guardianship.objects.filter(
        tenant_id=caller.tenant_id, user_id=caller.user_id, subject__tenant_id=caller.tenant_id
    ).exclude(expires_at__lte=RawSQL("consentful_now()", []))


def check_appointer(caller: Caller) -> None:
    """
    Refuse whoever may not appoint guardians: operators and owners may.

    Raises:
        PermissionDenied: neither, or an agent.
    """
    if not caller.is_steward:
        raise PermissionDenied("Only an operator or an owner appoints guardians.")


def _user_of(tenant_id: int, username: str) -> Any:
    """Return the login, unless it has no role here: who is known elsewhere is nobody's business."""
    users = get_user_model()._default_manager
    name = username if "\x00" not in username else ""  # which the database refuses as a parameter
    user = users.filter(**{get_user_model().USERNAME_FIELD: name}).first()
    if user is not None:
        with store().cursor() as cursor:
            cursor.execute(
                "SELECT tenant_id IS NOT NULL FROM consentful_caller(NULL, %s,"
                " (SELECT slug FROM consentful_tenant WHERE id = %s))",
                [str(user.pk), tenant_id],
            )
            row = cursor.fetchone()
        if row is not None and row[0]:
            return user
    raise NotFound("No login of this name has a role in this tenant.")

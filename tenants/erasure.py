"""
What an erasure does to what this app holds: identity, bound tokens, answers, admin log, the trail.

Every function runs inside a unit of work that holds the person's exclusive fence. Who may ask, in
which order the apps are asked and what is reported belongs in `privacy`.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import RawSQL

from audit.models import Event
from tenants.idempotency import digest_of_caller
from tenants.models import (
    Guardianship,
    IdempotencyRecord,
    Subject,
    TenantUserPermission,
    Token,
    Tombstone,
)
from tenants.personal import Target
from tenants.pseudonyms import digests_of, name_digest
from tenants.scopes import Scope
from tenants.units import store


def new_pseudonym() -> str:
    """Return a name that says nothing but that somebody was forgotten."""
    return f"erased-{secrets.token_hex(16)}"


def find_subject(*, tenant_id: int, subject: str) -> Subject | None:
    """Return the row of a person who is known, inside a unit of work."""
    return Subject.objects.filter(tenant_id=tenant_id, external_id=subject).first()


def name_of_login(user_id: str | int | None) -> str | None:
    """Return what a login is called, if there still is one."""
    users = get_user_model()._default_manager
    user = None if user_id is None else users.filter(pk=user_id).first()
    return None if user is None else user.get_username()


def logins_called(target: Target, names: Sequence[str]) -> set[str]:
    """Return the user ids under which logins of these names acted on a person, by the trail."""
    found = Event.objects.filter(
        tenant_id=target.tenant_id, subject=target.subject, actor__in=names, actor_id__isnull=False
    )
    return {str(one) for one in found.values_list("actor_id", flat=True).distinct()}


# Credentials that act for the person ---------------------------------------------------------


def bound_tokens(target: Target) -> QuerySet[Token]:
    """Return the agents' tokens that reach this person, and nobody else."""
    return Token.objects.filter(tenant_id=target.tenant_id, on_behalf_of=target.subject)


def guardianships_over(target: Target) -> QuerySet[Guardianship]:
    """Return who acts for the person."""
    return Guardianship.objects.filter(
        tenant_id=target.tenant_id, subject_id=target.subject_id or 0
    )


def guardianships_of(target: Target) -> QuerySet[Guardianship]:
    """Return for whom the person's logins act: others depend on it."""
    return Guardianship.objects.filter(tenant_id=target.tenant_id, user__in=list(target.logins))


def roles_of(target: Target) -> QuerySet[TenantUserPermission]:
    """Return the roles of the person's logins."""
    return TenantUserPermission.objects.filter(
        content_object_id=target.tenant_id, user__in=list(target.logins)
    )


# Answers to idempotency keys -----------------------------------------------------------------


def kept_answers(target: Target) -> QuerySet[IdempotencyRecord]:
    """Return what is kept of requests about the person, by it, or on its behalf."""
    agents = bound_tokens(target).values_list("user_id", flat=True)
    callers = [digest_of_caller(login, None) for login in target.logins]
    callers += [digest_of_caller(str(agent), target.subject) for agent in agents]
    kept = IdempotencyRecord.objects.filter(tenant_id=target.tenant_id)
    if target.written_until is not None:
        kept = kept.filter(created_at__lte=target.written_until)
    return kept.filter(
        Q(subject_id=target.subject_id, subject_id__isnull=False)
        | Q(caller__in=callers)
        | Q(answer__actor__in=list(target.names))
    )


# Django's admin log --------------------------------------------------------------------------


def logged_names(target: Target) -> QuerySet[Model]:
    """Return the entries of the admin's log about the person that still say something."""
    entry = apps.get_model("admin", "LogEntry")
    kinds = ContentType.objects.get_for_models(Subject, get_user_model())
    about = Q(pk__in=())
    if target.subject_id is not None:
        about |= Q(content_type=kinds[Subject], object_id=str(target.subject_id))
    about |= Q(content_type=kinds[get_user_model()], object_id__in=list(target.logins))
    texts = Q(change_message__contains=target.subject) | Q(object_repr__contains=target.subject)
    for name in target.names:
        texts |= Q(change_message__contains=name) | Q(object_repr__contains=name)
    entries: QuerySet[Model] = entry._default_manager.filter(about & texts)
    return entries


def has_admin_log() -> bool:
    """Whether the host has Django's admin at all."""
    return apps.is_installed("django.contrib.admin")


# The trail -----------------------------------------------------------------------------------


def naming_events(target: Target) -> QuerySet[Event]:
    """Return the events in which the person, or what is erased of it, can still be read."""
    events = Event.objects.filter(tenant_id=target.tenant_id)
    if target.is_whole:
        return events.filter(
            Q(subject=target.subject)
            | Q(on_behalf_of=target.subject)
            | Q(actor_id__in=list(target.logins), actor__isnull=False)
        )
    events = events.filter(subject=target.subject)
    if target.keys is not None:
        events = events.filter(key__in=list(target.keys))
    if target.purposes is not None:
        events = events.filter(key__isnull=False, purpose__in=list(target.purposes))
    if target.written_until is not None:
        # What was written since stays, and its own events with it.
        events = events.filter(
            Q(at__lte=target.written_until)
            | ~Q(action__in=("preference.created", "preference.replaced"))
        )
    return events


def blank_trail(target: Target) -> None:
    """Blank what can be read in those events, with its salts; the chain goes on verifying."""
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT * FROM consentful_blank_trail("
            "%s, %s, %s, %s::text[], %s::text[], %s::text[], %s::timestamptz)",
            [
                target.tenant_id,
                target.subject_id,
                target.subject,
                None if target.keys is None else list(target.keys),
                None if target.purposes is None else list(target.purposes),
                list(target.logins),
                target.written_until,
            ],
        )


# The person itself ---------------------------------------------------------------------------


def bury(target: Target) -> None:
    """
    Put the pseudonym in the person's place, and remember the name as a keyed digest alone.

    A login of the same name may come back under it. One of another name needs its role anew:
    which person it was is forgotten.
    """
    person = find_subject(tenant_id=target.tenant_id, subject=target.subject)
    if person is None:
        return
    is_same = person.user_id is not None and name_of_login(person.user_id) == target.subject
    Subject.objects.filter(pk=person.pk).update(
        external_id=target.pseudonym, user=None, erased_at=RawSQL("consentful_now()", [])
    )
    changes: dict[str, Any] = {"at": RawSQL("consentful_now()", []), "returned_at": None}
    if is_same:
        changes["user_id"] = person.user_id
    Tombstone.objects.update_or_create(
        tenant_id=target.tenant_id,
        digest=name_digest(target.tenant_id, target.subject),
        defaults=changes,
    )


def note_return(*, tenant_id: int, subject: str) -> bool:
    """
    Record that a forgotten person consented anew; return whether this is one. Inside a unit.

    Nothing of before is found again: the tombstone knows the name's digest and no row of theirs.
    """
    name = Scope.of_subject(subject).name
    tombstones = Tombstone.objects.filter(
        tenant_id=tenant_id, digest__in=digests_of(tenant_id, name), returned_at=None
    )
    found = tombstones.first()
    if found is None:
        return False
    tombstones.update(returned_at=RawSQL("consentful_now()", []))
    if found.user_id is not None:
        logins = Subject.objects.filter(tenant_id=tenant_id, user_id=found.user_id)
        if not logins.exists():
            Subject.objects.filter(tenant_id=tenant_id, external_id=name, user=None).update(
                user_id=found.user_id
            )
    return True

"""What this app holds about persons: who they are here, what their login may do, and the trail."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.db.models import Model, Q, QuerySet

from audit.models import Event
from tenants import erasure
from tenants.models import (
    Guardianship,
    IdempotencyRecord,
    Subject,
    TenantUserPermission,
    Token,
    Tombstone,
)
from tenants.personal import NOTHING_LEFT, Item, Remainder, Store, Target, in_pieces
from tenants.times import format_time


def describe() -> Sequence[Store]:
    """Return the stores of this app. Django's log of its admin is among them where it is used."""
    log = _staff_log()
    return [
        Store(
            name="identity",
            holds="Who you are here: the id under which your data is kept, and your login's name.",
            models=(Subject, Tombstone),
        ),
        Store(name="roles", holds="What your login may do here.", models=(TenantUserPermission,)),
        Store(
            name="guardians",
            holds="Who acts for you here, and how that is known.",
            models=(Guardianship,),
        ),
        Store(
            name="tokens",
            holds="Credentials of your login, and of agents that act for you. Their secrets are"
            " not kept.",
            models=(Token,),
        ),
        Store(
            name="repeats",
            holds="What requests with an Idempotency-Key were answered: for a day, without values.",
            models=(IdempotencyRecord,),
        ),
        Store(
            name="events",
            holds="The trail: who read or changed something about you, and when. Without values.",
            models=(Event,),
        ),
        *(
            [
                Store(
                    name="staff_log",
                    holds="What staff did to your entry in the pages of the administration.",
                    models=(log,),
                )
            ]
            if log
            else []
        ),
    ]


def export(*, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
    """Yield what a store of this app holds about one person, oldest first."""
    person = Subject.objects.filter(tenant_id=tenant_id, external_id=subject).first()
    match store:
        case "identity":
            if person is not None:
                yield _identity(person)
        case "roles":
            # A login that is nobody here has no roles that are this person's.
            login = person and person.user_id
            roles = TenantUserPermission.objects.filter(
                content_object_id=tenant_id, user_id=login
            ).select_related("permission")
            for role in in_pieces(roles.exclude(user_id=None)):
                yield {"role": role.permission.codename.removeprefix("act_as_")}
        case "guardians":
            guardians = Guardianship.objects.filter(tenant_id=tenant_id, subject=person)
            for guardian in in_pieces(guardians.select_related("user")) if person else ():
                yield {
                    "guardian": guardian.user.get_username(),
                    "evidence": guardian.evidence,
                    "since": format_time(guardian.created_at),
                    "expires_at": format_time(guardian.expires_at) if guardian.expires_at else None,
                }
        case "tokens":
            for token in in_pieces(_tokens(tenant_id, subject, person)):
                yield _token(token)
        case "repeats":
            if person is not None:
                rows = IdempotencyRecord.objects.filter(tenant_id=tenant_id, subject=person)
                for row in in_pieces(rows):
                    yield {"created_at": format_time(row.created_at), "answer": row.answer}
        case "events":
            for event in in_pieces(events_about(tenant_id=tenant_id, subject=subject)):
                yield activity_of(event, subject)
        case "staff_log":
            yield from _logged(person)


def events_about(*, tenant_id: int, subject: str) -> QuerySet[Event]:
    """
    Return what was done about one person. Inside a unit of work or a snapshot.

    Without refused attempts, which read and changed nothing and may name another person, and
    without the snapshots that retention leaves, which nobody did.
    """
    return Event.objects.filter(
        tenant_id=tenant_id, subject=subject, outcome=Event.Outcome.DONE
    ).exclude(action__endswith=".snapshot")


def activity_of(event: Event, subject: str) -> Item:
    """Return an event as the person concerned sees it: who, what and when, without values."""
    return {
        "at": format_time(event.at),
        "action": event.action,
        "actor": event.actor,
        # A name besides the actor's is shown to whom it belongs alone.
        "on_behalf_of": event.on_behalf_of if event.on_behalf_of == subject else None,
        "target": {"scope": event.scope, "key": event.key},
        "purpose": event.purpose,
        "changed": list(event.changed),
        "reason": event.reason,
    }


def _identity(person: Subject) -> Item:
    user: Any = person.user
    return {
        "subject": person.external_id,
        "login": None if user is None else user.get_username(),
        "known_since": format_time(person.created_at),
    }


def _tokens(tenant_id: int, subject: str, person: Subject | None) -> QuerySet[Token]:
    theirs = Q(on_behalf_of=subject, tenant_id=tenant_id)
    if person is not None and person.user_id is not None:
        # One without a tenant works in all of them, here too.
        own = Q(user_id=person.user_id, on_behalf_of=None)
        theirs |= own & (Q(tenant_id=tenant_id) | Q(tenant_id=None))
    return Token.objects.filter(theirs)


def _token(token: Token) -> Item:
    return {
        "created_at": format_time(token.created_at),
        "expires_at": format_time(token.expires_at),
        "revoked_at": format_time(token.revoked_at) if token.revoked_at else None,
        "on_behalf_of": token.on_behalf_of,
    }


def _staff_log() -> type[Model] | None:
    """Return Django's log of the admin, which a host may do without."""
    return (
        apps.get_model("admin", "LogEntry") if apps.is_installed("django.contrib.admin") else None
    )


def _logged(person: Subject | None) -> Iterator[Item]:
    log: Any = _staff_log()
    if person is None or log is None:
        return
    about = log.objects.filter(
        content_type__app_label=Subject._meta.app_label,
        content_type__model=Subject._meta.model_name,
        object_id=str(person.pk),
    )
    for entry in in_pieces(about.select_related("user")):
        yield {
            "at": format_time(entry.action_time),
            "actor": entry.user.get_username(),
            "action": entry.get_action_flag_display().lower(),
        }


# Erasure -------------------------------------------------------------------------------------

_LOGIN = "It belongs to the login, whose account is not ours: who manages accounts takes it away."
_TRAIL = "Kept without names, to prove what was done (GDPR articles 5(2), 17(3)(b) and 17(3)(e))."


def erase(*, target: Target, store: str) -> Remainder | None:
    """Erase what a store of this app holds of a target. Inside the unit of an erasure."""
    match store:
        case "events":
            there = erasure.naming_events(target).count()
            erasure.blank_trail(target)
            return Remainder(kept=there, ground=_TRAIL if there else None)
        case "repeats":
            erasure.kept_answers(target).delete()
            return NOTHING_LEFT
        case _ if not target.is_whole:
            return None
        case "identity":
            erasure.bury(target)
        case "guardians":
            erasure.guardianships_over(target).delete()
            mandates = erasure.guardianships_of(target).count()
            return Remainder(kept=mandates, ground=_LOGIN if mandates else None)
        case "tokens":
            erasure.bound_tokens(target).delete()
        case "staff_log":
            erasure.logged_names(target).update(object_repr=target.pseudonym, change_message="")
        case "roles":
            roles = erasure.roles_of(target).count()
            return Remainder(kept=roles, ground=_LOGIN if roles else None)
    return NOTHING_LEFT


def count(*, target: Target, store: str) -> int:
    """Return how much of a target a store of this app still holds. Inside a unit of work."""
    match store:
        case "identity":
            return Subject.objects.filter(
                tenant_id=target.tenant_id, external_id=target.subject, erased_at=None
            ).count()
        case "guardians":
            return erasure.guardianships_over(target).count()
        case "tokens":
            return erasure.bound_tokens(target).count()
        case "repeats":
            return erasure.kept_answers(target).count()
        case "events":
            return erasure.naming_events(target).count()
        case "staff_log":
            return erasure.logged_names(target).count()
    return 0

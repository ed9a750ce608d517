"""Whom an erasure is about: found once, before anything goes. Changes nothing."""

from collections.abc import Sequence
from dataclasses import replace

from consent.models import ConsentEntry
from preferences.models import Preference
from tenants.erasure import find_subject, logins_called, name_of_login
from tenants.personal import Target


def find_target(
    *,
    tenant_id: int,
    subject: str,
    pseudonym: str,
    login: str | None = None,
    keys: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
) -> Target:
    """
    Return whom an erasure of this person is about. Inside a unit of work.

    The person's logins are the one that its row names, the caller's where it asks for itself, and
    those under whose names it confirmed what is stored: a host may map users to persons in code.

    Args:
        pseudonym: what takes the name's place.
        login: user id of the caller, where it stands for the person.
    """
    person = find_subject(tenant_id=tenant_id, subject=subject)
    subject_id = None if person is None else person.pk
    known = {login} if login is not None else set()
    if person is not None and person.user_id is not None:
        known.add(str(person.user_id))
    names = {name for one in known if (name := name_of_login(one)) is not None}
    names |= _confirming_names(tenant_id, subject_id)
    target = Target(
        tenant_id=tenant_id,
        subject=subject,
        subject_id=subject_id,
        pseudonym=pseudonym,
        logins=sorted(known),
        names=sorted(names),
        keys=keys,
        purposes=purposes,
    )
    found = known | logins_called(target, target.names)
    return replace(target, logins=sorted(found))


def _confirming_names(tenant_id: int, subject_id: int | None) -> set[str]:
    if subject_id is None:
        return set()
    about = {"tenant_id": tenant_id, "subject_id": subject_id}
    entries = ConsentEntry.objects.filter(**about, method="user_confirmed")
    records = Preference.objects.filter(**about, source="user_confirmed")
    return {
        *entries.values_list("actor", flat=True).distinct(),
        *records.values_list("actor", flat=True).distinct(),
    }

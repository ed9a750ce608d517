"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings
from django.utils.module_loading import import_string


def personal_data() -> Sequence[str]:
    """
    `CONSENTFUL_PERSONAL_DATA`: what a host itself holds about persons: dotted paths of modules, or of
    classes that are made without arguments, which fulfil `tenants.personal.PersonalData`, e.g.
    ``["shop.personal_data"]``.

    Their stores are shown, exported and erased with ours. Default: none.
    """
    return getattr(settings, "CONSENTFUL_PERSONAL_DATA", ())


def erasure_jobs() -> Callable[[str], object] | None:
    """
    `CONSENTFUL_ERASURE_JOBS`: dotted path of a function that gives an erasure to a job queue: called with the
    erasure's id, which names nobody, inside the transaction that erased; the job calls
    `privacy.jobs.run_erasure` with it.

    Default: None. Then `run_erasures`, which housekeeping calls, asks the holders.
    """
    path: str | None = getattr(settings, "CONSENTFUL_ERASURE_JOBS", None)
    if path is None:
        return None
    found: Callable[[str], object] = import_string(path)
    return found


def suppressions() -> Path | Sequence[str] | None:
    """
    `CONSENTFUL_SUPPRESSIONS`: where the list of what must not return with a backup is kept, which must not
    be the database: a folder, or a command with its arguments as a list (see `audit.stores`).

    Default: None. Then nobody can tell that a restored database brings people back.
    """
    chosen: str | Path | Sequence[str] | None = getattr(settings, "CONSENTFUL_SUPPRESSIONS", None)
    return Path(chosen) if isinstance(chosen, str) else chosen or None


def backup_days() -> int | None:
    """
    `CONSENTFUL_BACKUP_DAYS`: for how many days a backup of the database is kept. A receipt says until when
    what was erased is in one.

    Default: None, and the receipt says that it is not known.
    """
    days: int | None = getattr(settings, "CONSENTFUL_BACKUP_DAYS", None)
    return days


def page_languages() -> Sequence[str]:
    """
    `CONSENTFUL_PAGE_LANGUAGES`: languages that a person's page is offered in, the first one where a
    browser asks for none of them. Add one whose catalogue your `LOCALE_PATHS` hold.

    Default: ``("en", "de")``.
    """
    return getattr(settings, "CONSENTFUL_PAGE_LANGUAGES", ("en", "de"))


def page_login_url() -> str | None:
    """
    `CONSENTFUL_PAGE_LOGIN_URL`: where a person signs in who opens its page without a session; the
    page's own address goes along as ``next``.

    Default: None, the page has a form of its own, which asks Django's authentication.
    """
    return getattr(settings, "CONSENTFUL_PAGE_LOGIN_URL", None)

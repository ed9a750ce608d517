"""
Whether the service lives and whether it may get requests.

Neither answer says why: strangers ask too. The `check` command says it to the operator.
"""

from functools import cache

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from audit.stores import StoreFailed
from privacy.restores import is_behind
from tenants.checks import find_bypass


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer that the process is up."""
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """
    Answer whether the database is reachable, complete, kept apart by its second wall, and no older
    copy that awaits its erasures.
    """
    try:
        is_ready = (
            not find_missing_migrations() and not _escapes_row_level_security() and not is_behind()
        )
    except (DatabaseError, StoreFailed):
        is_ready = False
    if is_ready:
        return JsonResponse({"status": "ok"})
    return JsonResponse({"status": "unavailable"}, status=503)


def find_missing_migrations() -> list[str]:
    """Return the names of the migrations that the database still lacks."""
    missing = _migrations_on_disk() - set(MigrationRecorder(connection).applied_migrations())
    return sorted(f"{app}.{name}" for app, name in missing)


@cache
def _migrations_on_disk() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.nodes)


def _escapes_row_level_security() -> bool:
    # With one login for everything there is no second wall to ask for; a system check says so.
    return settings.CONSENTFUL_RUNTIME_ROLE is not None and find_bypass("default")[0]

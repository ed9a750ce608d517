"""System checks of the boundary: what would let a request past one of the two walls."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tenants.units import database

#: Read before a tenant is known, hence without row-level security: named here and nowhere else.
EXEMPT_TABLES = frozenset(
    {
        "consentful_tenant",
        "consentful_subject",
        "consentful_tenant_user_permission",
        "consentful_tenant_group_permission",
        "consentful_purpose_user_permission",
        "consentful_purpose_group_permission",
        "consentful_token",
    }
)

BYPASS = """
    SELECT r.rolsuper OR r.rolbypassrls,
           EXISTS (SELECT FROM pg_class c WHERE c.relname = 'consentful_audit_event'
                   AND pg_has_role(session_user, c.relowner, 'MEMBER')),
           (SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}') FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
            WHERE c.relkind = 'r' AND NOT c.relrowsecurity AND c.relname ^@ 'consentful_'
              AND c.relname <> ALL (%s))
    FROM pg_roles r WHERE r.rolname = session_user
"""


def find_bypass(alias: str) -> tuple[bool, Sequence[str]]:
    """Return whether this login escapes row-level security, and the tables that lack it."""
    with connections[alias].cursor() as cursor:
        cursor.execute(BYPASS, [list(EXEMPT_TABLES)])
        above, is_owner, open_tables = cursor.fetchone() or (True, True, ())
    return above or is_owner, open_tables


def is_complete(alias: str) -> bool:
    """Return whether every migration of ours has been applied, as far as this login may know."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(has_table_privilege(to_regclass('django_migrations'), 'SELECT'), false)"
        )
        if cursor.fetchone() != (True,):
            return False  # rights are granted when all have been applied for the first time
    applied = MigrationRecorder(connection).applied_migrations()
    ours = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return all(one in applied for one in ours if one[0].startswith("consentful_"))


#: The folder names are general words: another package of that name may stand first on the path.
PACKAGES = ("audit", "consent", "preferences", "privacy")


@register()
def check_shadowing(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Every app must come from where this one comes from."""
    here = Path(__file__).resolve().parent.parent
    found: list[CheckMessage] = []
    for name in PACKAGES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != here:
            found.append(
                Error(
                    f"The package {name} is shadowed by another of that name: {origin}.",
                    hint="Rename yours, or put ours first on the path.",
                    id="consentful.E004",
                )
            )
    return found


@register(Tags.database)
def check_isolation(
    app_configs: Any, databases: Sequence[str] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Row-level security must hold for the login that serves requests."""
    alias = database()
    if alias not in (databases or ()):
        return []
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return [
            Error(
                "Consentful keeps its guarantees in PostgreSQL 15 or later.", id="consentful.E001"
            )
        ]
    if getattr(connection, "is_owner", False):
        return []  # migrating: the owner is meant to see all rows
    escapes, open_tables = find_bypass(alias)
    found: list[CheckMessage] = []
    if escapes:
        found.append(
            Warning(
                "The database login owns the tables or is above row-level security, so the second"
                " wall between tenants does not hold for it.",
                hint="Serve with a login that owns nothing: see docs/reference/settings.md.",
                id="consentful.W001",
            )
        )
    # Between two migrations a table may stand without its policy for a moment: an error then would
    # keep `migrate` from going on where it was interrupted.
    if open_tables and is_complete(alias):
        found.append(
            Error(
                f"Without row-level security: {', '.join(open_tables)}.",
                hint="Run the migrations as the owner.",
                id="consentful.E002",
            )
        )
    return found


@register(Tags.database)
def check_isolation_level(
    app_configs: Any, databases: Sequence[str] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Under any other level a write can pass a withdrawal that it waited for."""
    alias = database()
    if alias not in (databases or ()) or connections[alias].vendor != "postgresql":
        return []
    with connections[alias].cursor() as cursor:
        cursor.execute("SHOW default_transaction_isolation")
        row = cursor.fetchone()
    options = connections[alias].settings_dict.get("OPTIONS", {})
    if options.get("isolation_level", 2) not in (2, "read committed") or row != ("read committed",):
        return [
            Error(
                "The consent fence needs the isolation level READ COMMITTED.",
                hint="Remove isolation_level from OPTIONS and default_transaction_isolation.",
                id="consentful.E003",
            )
        ]
    return []

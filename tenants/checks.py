"""System checks: what would let a request past one of the two walls, and mistakes of a set-up."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.urls import get_resolver

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

#: The last of them answers what no route names.
ROUTES = ("tenants.urls", "consent.urls", "preferences.urls", "agents.urls", "privacy.urls")

BYPASS = """
    SELECT r.rolsuper OR r.rolbypassrls,
           EXISTS (SELECT FROM pg_class c WHERE c.relname = 'consentful_audit_event'
                   AND pg_has_role(session_user, c.relowner, 'MEMBER')),
           (SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}') FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
            WHERE c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND c.relname ^@ 'consentful_'
              AND c.relname <> ALL (%s))
    FROM pg_roles r WHERE r.rolname = session_user
"""


def find_bypass(alias: str) -> tuple[bool, Sequence[str]]:
    """Return whether this login escapes row-level security, and the tables that lack it."""
    with connections[alias].cursor() as cursor:
        cursor.execute(BYPASS, [list(EXEMPT_TABLES)])
        above, is_owner, open_tables = cursor.fetchone() or (True, True, ())
    return above or is_owner, open_tables


@register(Tags.models)
def check_user_model(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Roles may be given to groups, and rows name users: both must be where the tenants are."""
    user = get_user_model()
    if not any(field.name == "groups" for field in user._meta.get_fields()):
        return [
            Error(
                f"The user model {user._meta.label} has no groups, to which roles may be given.",
                hint="Derive it from django.contrib.auth.models.PermissionsMixin too.",
                id="consentful.E008",
            )
        ]
    if router.db_for_write(user) != database():
        return [
            Error(
                f"Users are written to the database {router.db_for_write(user)}, tenants to"
                f" {database()}: a foreign key cannot reach from one to the other.",
                hint="Let your router keep auth, contenttypes, guardian, your user model's app and"
                " every app whose label starts with consentful_ in one database.",
                id="consentful.E009",
            )
        ]
    return []


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


@register()
def check_guardian(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Defaults of guardian that add to a host's users what nothing here uses."""
    wanted = {
        "GUARDIAN_MONKEY_PATCH_USER": False,
        "GUARDIAN_MONKEY_PATCH_GROUP": False,
        "ANONYMOUS_USER_NAME": None,
    }
    missing = [name for name in wanted if not hasattr(settings, name)]
    if not missing:
        return []
    return [
        Warning(
            f"Without {', '.join(missing)}, guardian adds methods to your models of users and"
            " groups and makes a user AnonymousUser.",
            hint="; ".join(f"{name} = {wanted[name]}" for name in missing)
            + ". Say so too where you want what it adds.",
            id="consentful.W002",
        )
    ]


@register()
def check_time_zones(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Deadlines are moments: without an offset nobody knows which."""
    if settings.USE_TZ:
        return []
    return [
        Error(
            "Consentful needs aware times.",
            hint="Set USE_TZ = True. TIME_ZONE may be what you like.",
            id="consentful.E011",
        )
    ]


@register(Tags.urls)
def check_routes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The URLs of the installed apps belong together, the one that answers every other path last."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return []
    found = list(_included(get_resolver().url_patterns))
    missing = [
        name
        for name in ROUTES
        if name not in found and apps.is_installed(name.removesuffix(".urls"))
    ]
    if found and missing:
        return [
            Warning(
                f"The URLs of Consentful are included without {', '.join(missing)}.",
                hint="Add path(…, include(…)) for each, privacy.urls last.",
                id="consentful.W003",
            )
        ]
    if found and found[-1] != ROUTES[-1]:
        return [
            Error(
                f"{ROUTES[-1]} answers every path below its own, so {found[-1]} is never reached.",
                hint=f"Include {ROUTES[-1]} last.",
                id="consentful.E010",
            )
        ]
    return []


def _included(patterns: Sequence[Any]) -> Iterator[str]:
    """Yield which of the apps' URLs are included, in order."""
    for pattern in patterns:
        module = getattr(pattern, "urlconf_name", None)
        if module is None:
            continue
        name = getattr(module, "__name__", module)
        if name in ROUTES:
            yield name
        else:
            yield from _included(pattern.url_patterns)


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
                hint="Right while migrating. Serve with another login, which owns nothing: see"
                " docs/how-to/embed.md.",
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

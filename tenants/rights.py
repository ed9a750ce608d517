"""What the runtime login may do in the database, granted by the owner after every migration."""

from django.apps import apps
from django.core.management.base import CommandError
from django.db import connections, transaction
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from tenants.conf import runtime_role


def check_login(*, using: str) -> None:
    """
    See, before anything is migrated, that the owner migrates and the runtime login is there.

    Raises:
        CommandError: the runtime login migrates what it does not own, or there is no such login.
    """
    role = runtime_role()
    connection = connections[using]
    # The standalone service's connections change to the owner by themselves.
    if role is None or connection.vendor != "postgresql" or hasattr(connection, "is_owner"):
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_user = %s"
            " AND NOT (has_schema_privilege('public', 'CREATE') AND pg_has_role(coalesce("
            "  (SELECT relowner FROM pg_class WHERE oid = to_regclass('consentful_tenant')),"
            "  session_user::regrole), 'USAGE')),"
            " to_regrole(quote_ident(%s)) IS NOT NULL",
            [role, role],
        )
        is_too_low, is_there = cursor.fetchone()
    if is_too_low:
        raise CommandError(
            f"consentful.E006: {role} is the login that serves (CONSENTFUL_RUNTIME_ROLE) and must"
            " own nothing: migrate with the login that owns the tables."
        )
    if not is_there:
        raise CommandError(
            f"consentful.E007: there is no database login {role} (CONSENTFUL_RUNTIME_ROLE):"
            f" CREATE ROLE {role} LOGIN."
        )


def grant_sight_of_migrations(*, using: str) -> None:
    """
    Let the runtime login see which migrations were applied, before the first one is.

    `migrate` asks as that login before it changes anything. Without this right, one that was
    interrupted the first time could never go on.
    """
    role = runtime_role()
    connection = connections[using]
    if role is None or connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user = %s", [role])
        if cursor.fetchone()[0]:
            return
        MigrationRecorder(connection).ensure_schema()
        statement = sql.SQL("GRANT SELECT ON django_migrations TO {}").format(sql.Identifier(role))
        cursor.execute(statement.as_string(cursor.connection))


def grant_runtime_rights(*, using: str) -> None:
    """
    Give the runtime login its rights and take away what it must not have. Idempotent.

    Does nothing where one login does everything (see the check ``consentful.W001``): an owner
    cannot usefully be refused its own tables.
    """
    role = runtime_role()
    connection = connections[using]
    if role is None or connection.vendor != "postgresql":
        return
    # One transaction: a service that runs meanwhile never has more than its rights.
    with transaction.atomic(using=using), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user = %s OR to_regclass('consentful_tenant') IS NULL", [role]
        )
        if cursor.fetchone()[0]:
            return
        name = sql.Identifier(role)
        for statement in (
            "GRANT USAGE ON SCHEMA public TO {}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
            "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {}",
            "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {}",
        ):
            cursor.execute(sql.SQL(statement).format(name).as_string(cursor.connection))
        for app in apps.get_app_configs():
            for table, rights in getattr(app, "runtime_rights", {}).items():
                cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
                if not cursor.fetchone()[0]:
                    continue  # a later migration of this run creates it
                where = sql.Identifier(table)
                for statement in ("REVOKE ALL ON {} FROM {}", f"GRANT {rights} ON {{}} TO {{}}"):
                    cursor.execute(
                        sql.SQL(statement).format(where, name).as_string(cursor.connection)
                    )
                # Parts of a table are reached through it alone.
                cursor.execute(
                    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid"
                    " WHERE inhparent = %s::regclass",
                    [table],
                )
                for (part,) in cursor.fetchall():
                    taken = sql.SQL("REVOKE ALL ON {} FROM {}").format(sql.Identifier(part), name)
                    cursor.execute(taken.as_string(cursor.connection))

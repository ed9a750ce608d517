"""The host's user table, as the SQL functions must name it. The host may have its own model."""

from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def user_table_names(user: Any, connection: BaseDatabaseWrapper) -> dict[str, str]:
    """
    Return quoted names for the placeholders of `sql/*.sql`.

    Args:
        user: the user model as it is now, or as a migration knows it.
        connection: the database that holds its table.
    """
    quote = connection.ops.quote_name
    groups = user._meta.get_field("groups").remote_field.through
    link = next(
        field
        for field in groups._meta.fields
        if field.related_model is not None and field.related_model._meta.label == user._meta.label
    )
    pk = user._meta.pk
    return {
        "users": quote(user._meta.db_table),
        "pk": quote(pk.column),
        "pk_type": str(pk.db_type(connection)).removesuffix(" identity"),
        "username": quote(_find_column(user, get_user_model().USERNAME_FIELD) or ""),
        # A model without the column has the attribute alone: everyone is active.
        "is_active": f"u.{quote(column)}"
        if (column := _find_column(user, "is_active"))
        else "true",
        "user_groups": quote(groups._meta.db_table),
        "user_fk": quote(link.column),
    }


def install_for_users(file: Path, *, user: Any, connection: BaseDatabaseWrapper) -> None:
    """Create or replace the functions of a file that name the host's user table."""
    text = file.read_text("utf-8").format(**user_table_names(user, connection))
    with connection.cursor() as cursor:
        cursor.execute(text)


def follow_user_table(*, using: str) -> None:
    """
    Let the installed functions name the user table as the host's newest migrations left it.

    Does nothing where they do already, and for a login that does not own them.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    for app in apps.get_app_configs():
        for function, file in getattr(app, "user_functions", {}).items():
            names = user_table_names(get_user_model(), connection)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT prosrc FROM pg_proc WHERE oid = to_regproc(%s)"
                    " AND pg_has_role(proowner, 'USAGE')",
                    [function],
                )
                row = cursor.fetchone()
            if row is not None and row[0] not in file.read_text("utf-8").format(**names):
                install_for_users(file, user=get_user_model(), connection=connection)


def user_of_migration(apps: Any) -> Any:
    """Return the host's user model as a migration's registry knows it."""
    return apps.get_model(settings.AUTH_USER_MODEL)


def _find_column(user: Any, name: str) -> str | None:
    """Return the column of a field, which a later migration of the host may be yet to create."""
    models: tuple[Any, ...] = (user, get_user_model())
    for model in models:
        try:
            return str(model._meta.get_field(name).column)
        except FieldDoesNotExist:
            continue
    return None

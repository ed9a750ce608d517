"""The host's user table, as the SQL functions must name it. The host may have its own model."""

from typing import Any

from django.conf import settings


def user_table_names(apps: Any, schema_editor: Any) -> dict[str, str]:
    """
    Return quoted names for the placeholders of `sql/*.sql`.

    Args:
        apps: the registry of a migration's state.
        schema_editor: of the connection that migrates.
    """
    quote = schema_editor.connection.ops.quote_name
    user = apps.get_model(settings.AUTH_USER_MODEL)
    groups = user._meta.get_field("groups").remote_field.through
    link = next(
        field for field in groups._meta.fields if field.related_model is not None
        and field.related_model._meta.label == user._meta.label
    )  # fmt: skip
    username = user.USERNAME_FIELD if hasattr(user, "USERNAME_FIELD") else "username"
    return {
        "users": quote(user._meta.db_table),
        "pk": quote(user._meta.pk.column),
        "pk_type": user._meta.pk.db_type(schema_editor.connection).removesuffix(" identity"),
        "username": quote(user._meta.get_field(username).column),
        "user_groups": quote(groups._meta.db_table),
        "user_fk": quote(link.column),
    }

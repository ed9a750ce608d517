"""Functions, triggers and policies: the guarantees that live in the database."""

from pathlib import Path

from django.conf import settings
from django.db import migrations

from tenants.users import install_for_users, user_of_migration

SQL = Path(__file__).resolve().parent.parent / "sql"


def name_users(apps, schema_editor):
    """Fill in the names of the host's user table: it may have its own model."""
    install_for_users(
        SQL / "caller.sql", user=user_of_migration(apps), connection=schema_editor.connection
    )


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("consentful_audit", "0002_guarantees"),
        ("consentful_tenants", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL((SQL / "tenants.sql").read_text("utf-8")),
        migrations.RunPython(name_users),
    ]

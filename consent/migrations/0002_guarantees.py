"""Functions, triggers and policies: the guarantees that live in the database."""

from pathlib import Path

from django.conf import settings
from django.db import migrations

from tenants.users import user_table_names

SQL = Path(__file__).resolve().parent.parent / "sql"


def install_for_users(apps, schema_editor):
    """Fill in the names of the host's user table: it may have its own model."""
    text = (SQL / "serves.sql").read_text("utf-8")
    schema_editor.execute(text.format(**user_table_names(apps, schema_editor)), params=None)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("consentful_tenants", "0002_guarantees"),
        ("consentful_consent", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(install_for_users),
        migrations.RunSQL((SQL / "consent.sql").read_text("utf-8")),
    ]

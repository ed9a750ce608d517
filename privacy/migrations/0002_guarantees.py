"""Functions, triggers and policies: the guarantees that live in the database."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_preferences", "0002_guarantees"),
        ("consentful_consent", "0003_erasure"),
        ("consentful_tenants", "0004_erasure"),
        ("consentful_audit", "0005_names_in_events"),
        ("consentful_privacy", "0001_initial"),
    ]

    operations = [migrations.RunSQL((SQL / "erasures.sql").read_text("utf-8"))]

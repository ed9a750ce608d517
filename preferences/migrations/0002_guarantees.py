"""Functions, triggers and policies: the guarantees that live in the database."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_consent", "0002_guarantees"),
        ("consentful_preferences", "0001_initial"),
    ]

    operations = [
        # Room on each page, so that a replaced value leaves the indexes alone: with none, one
        # replacement in five writes all of them (measured: docs/explanation/scaling.md).
        migrations.RunSQL("ALTER TABLE consentful_preference SET (fillfactor = 90)"),
        migrations.RunSQL((SQL / "preferences.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "put.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "batch.sql").read_text("utf-8")),
    ]

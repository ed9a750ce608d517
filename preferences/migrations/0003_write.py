"""The hot write: every purpose is asked for before any consent."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_preferences", "0002_guarantees")]

    operations = [
        # Replaces a function and touches no table. The way back keeps it: the one before is gone.
        migrations.RunSQL((SQL / "put.sql").read_text("utf-8"), migrations.RunSQL.noop),
    ]

"""Functions, triggers and policies: the guarantees that live in the database."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_audit", "0001_initial")]

    operations = [
        migrations.RunSQL((SQL / "ids.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "foundation.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "capture.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "compile.sql").read_text("utf-8")),
        migrations.RunSQL((SQL / "seal.sql").read_text("utf-8")),
    ]

"""Functions with which an operator lets the table of events grow in parts. Changes no table."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_audit", "0005_names_in_events")]

    operations = [migrations.RunSQL((SQL / "partitions.sql").read_text("utf-8"))]

"""Erasure: readable columns of events may be blanked together with their salts."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_audit", "0003_retention")]

    operations = [migrations.RunSQL((SQL / "erasure.sql").read_text("utf-8"))]

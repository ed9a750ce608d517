"""Erasure: names and evidence in the ledger may be blanked."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_consent", "0002_guarantees")]

    operations = [migrations.RunSQL((SQL / "erasure.sql").read_text("utf-8"))]

"""A function that writes down what a language model was shown. Changes no table."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_audit", "0007_refusals")]

    operations = [migrations.RunSQL((SQL / "injections.sql").read_text("utf-8"))]

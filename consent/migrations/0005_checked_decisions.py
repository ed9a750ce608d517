"""Validate what the ledger's decisions may be, in a transaction that holds nothing else."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("consentful_consent", "0004_rights")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE consentful_consent_entry VALIDATE CONSTRAINT consentful_entry_decision"
        )
    ]

"""Validate the holds, in a transaction that holds nothing else."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("consentful_preferences", "0004_holds")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE consentful_preference VALIDATE CONSTRAINT consentful_preference_hold"
        )
    ]

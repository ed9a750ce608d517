"""Legal holds on single records."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_preferences", "0003_readings"),
        ("consentful_consent", "0004_rights"),
    ]

    operations = [
        migrations.AddField(
            model_name="preference",
            name="held_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="preference",
            name="held_until",
            field=models.DateTimeField(help_text="Empty: until somebody ends it.", null=True),
        ),
        migrations.AddField(
            model_name="preference",
            name="hold_reason",
            field=models.TextField(null=True),
        ),
        migrations.RunSQL((SQL / "holds.sql").read_text("utf-8")),
    ]

"""Retention: a prefix of a chain may be cut, under a signed checkpoint."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consentful_audit", "0002_guarantees")]

    operations = [
        migrations.CreateModel(
            name="Cut",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("tenant_id", models.BigIntegerField()),
                (
                    "sequence",
                    models.BigIntegerField(help_text="Place of the last link that was cut."),
                ),
                ("hash", models.CharField(max_length=64)),
                (
                    "checkpoint",
                    models.TextField(
                        help_text="Signed: that this link stood there when it was cut."
                    ),
                ),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "consentful_audit_cut",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "sequence"), name="consentful_cut_place"
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "retention.sql").read_text("utf-8")),
    ]

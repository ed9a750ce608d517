"""Who else read a record: one row per record, reader and day."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_preferences", "0002_guarantees"),
        ("consentful_tenants", "0003_retention"),
    ]

    operations = [
        migrations.CreateModel(
            name="Reading",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reader", models.CharField(help_text="Who read it.", max_length=200)),
                ("day", models.DateField(help_text="In UTC.")),
                ("at", models.DateTimeField(help_text="When it was first noted on that day.")),
                (
                    "preference",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="consentful_preferences.preference",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="Whose record it is.",
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_tenants.subject",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_tenants.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "consentful_reading",
                "indexes": [
                    models.Index(
                        fields=["tenant", "subject", "id"], name="consentful_reading_subject"
                    ),
                    models.Index(fields=["tenant", "day"], name="consentful_reading_day"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "preference", "reader", "day"),
                        name="consentful_reading_once",
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "readings.sql").read_text("utf-8")),
    ]

"""Erasure: a pseudonym in a person's place, and names that were forgotten, as keyed digests."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("consentful_tenants", "0003_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="subject",
            name="erased_at",
            field=models.DateTimeField(
                editable=False,
                help_text="Since when a pseudonym stands in the name's place.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="Tombstone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("digest", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "returned_at",
                    models.DateTimeField(
                        help_text="When the person consented anew, with nothing of before.",
                        null=True,
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
                (
                    "user",
                    models.ForeignKey(
                        help_text="The login that had the same name, and stands for it again if it comes back.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "consentful_tombstone",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "digest"), name="consentful_tombstone_name"
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "erasure.sql").read_text("utf-8")),
    ]

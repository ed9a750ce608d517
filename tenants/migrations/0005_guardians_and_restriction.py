"""Who acts for a person, and what of a person is restricted."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_tenants", "0004_erasure"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="subject",
            name="gpc_at",
            field=models.DateTimeField(
                editable=False, help_text="When Sec-GPC was first heard of this person.", null=True
            ),
        ),
        migrations.AddField(
            model_name="subject",
            name="restricted",
            field=models.CharField(
                editable=False,
                help_text="What may not be used: all, or some keys. Kept by a trigger on the restrictions.",
                max_length=8,
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="Guardianship",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                (
                    "evidence",
                    models.TextField(
                        help_text="The court's paper, the birth certificate, the mandate."
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        help_text="When it ends by itself, as on the day a child comes of age.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        help_text="Who is acted for.",
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
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "consentful_guardianship",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "user", "subject"), name="consentful_guardianship_pair"
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "guardians.sql").read_text("utf-8")),
    ]

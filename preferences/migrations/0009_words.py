"""The words of texts, for search: a table beside the records, its trigger, and the search."""

from pathlib import Path

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_preferences", "0008_list_of_archived"),
        ("consentful_consent", "0004_rights"),
    ]

    operations = [
        migrations.CreateModel(
            name="RecordWords",
            fields=[
                (
                    "preference",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="consentful_preferences.preference",
                    ),
                ),
                ("words", django.contrib.postgres.search.SearchVectorField()),
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
                "db_table": "consentful_preference_words",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["words"], name="consentful_words_found"
                    )
                ],
            },
        ),
        # Room on each page, as the records have it.
        migrations.RunSQL("ALTER TABLE consentful_preference_words SET (fillfactor = 90)"),
        migrations.RunSQL((SQL / "search.sql").read_text("utf-8")),
    ]

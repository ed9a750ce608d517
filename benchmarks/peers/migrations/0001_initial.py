"""The tables of the peers, as their models say."""

import concurrency.fields
import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="HistoricalHistoried",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        auto_created=True, blank=True, db_index=True, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.BigIntegerField()),
                ("scope", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=200)),
                ("value", models.JSONField()),
                ("created_at", models.DateTimeField(blank=True, editable=False)),
                ("updated_at", models.DateTimeField(blank=True, editable=False)),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(
                        choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1
                    ),
                ),
                (
                    "history_user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "historical historied",
                "verbose_name_plural": "historical historieds",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name="Historied",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.BigIntegerField()),
                ("scope", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=200)),
                ("value", models.JSONField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "db_table": "peer_historied",
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "scope", "key"), name="peers_historied_address"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Logged",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.BigIntegerField()),
                ("scope", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=200)),
                ("value", models.JSONField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "db_table": "peer_logged",
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "scope", "key"), name="peers_logged_address"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Versioned",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.BigIntegerField()),
                ("scope", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=200)),
                ("value", models.JSONField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "version",
                    concurrency.fields.IntegerVersionField(
                        default=0, help_text="record revision number"
                    ),
                ),
            ],
            options={
                "db_table": "peer_versioned",
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "scope", "key"), name="peers_versioned_address"
                    )
                ],
            },
        ),
    ]

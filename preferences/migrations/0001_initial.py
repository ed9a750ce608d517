import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import preferences.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("consentful_consent", "0001_initial"),
        ("consentful_tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Definition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("key", models.CharField(db_collation="C", max_length=200)),
                (
                    "schema",
                    preferences.models.JSONTextField(
                        default="true", help_text="JSON Schema 2020-12."
                    ),
                ),
                (
                    "default",
                    preferences.models.JSONTextField(
                        blank=True, help_text="What applies where nothing is stored.", null=True
                    ),
                ),
                (
                    "ttl_default",
                    models.PositiveBigIntegerField(blank=True, help_text="Seconds.", null=True),
                ),
                (
                    "ttl_max",
                    models.PositiveBigIntegerField(blank=True, help_text="Seconds.", null=True),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), help_text="Kinds of scope."
                    ),
                ),
                (
                    "writers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("subject", "Subject"),
                                ("operator", "Operator"),
                                ("agent", "Agent"),
                            ],
                            max_length=16,
                        )
                    ),
                ),
                ("description", models.TextField(blank=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "purpose",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="consentful_consent.purpose"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="consentful_tenants.tenant"
                    ),
                ),
            ],
            options={
                "db_table": "consentful_definition",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "key"), name="consentful_definition_key"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ttl_default", None), ("ttl_default__gte", 1), _connector="OR"
                            ),
                            models.Q(("ttl_max", None), ("ttl_max__gte", 1), _connector="OR"),
                            models.Q(
                                ("ttl_max", None),
                                ("ttl_default", None),
                                ("ttl_default__lte", models.F("ttl_max")),
                                _connector="OR",
                            ),
                        ),
                        name="consentful_definition_ttl",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UndeclaredRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("kind", models.CharField(max_length=32)),
                ("is_allowed", models.BooleanField(default=False)),
                (
                    "purpose",
                    models.ForeignKey(
                        blank=True,
                        help_text="Governs them where the kind of scope is a person's.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="consentful_tenants.tenant"
                    ),
                ),
            ],
            options={
                "db_table": "consentful_undeclared_rule",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "kind"), name="consentful_undeclared_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_allowed", True), ("kind", "user"), ("purpose", None), _negated=True
                        ),
                        name="consentful_undeclared_personal",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("scope", models.CharField(db_collation="C", max_length=300)),
                ("key", models.CharField(db_collation="C", max_length=200)),
                ("value", preferences.models.JSONTextField()),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list
                    ),
                ),
                ("metadata", preferences.models.JSONTextField(default="{}")),
                ("source", models.CharField(max_length=16)),
                ("actor", models.CharField(max_length=200)),
                (
                    "provenance",
                    preferences.models.JSONTextField(
                        help_text="detail, origin and confidence, as the writer gave them."
                    ),
                ),
                ("seen_count", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField(editable=False)),
                ("updated_at", models.DateTimeField(editable=False)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "purpose",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
                        help_text="Whose data it is, if anyone's.",
                        null=True,
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
                "db_table": "consentful_preference",
                "indexes": [
                    models.Index(
                        fields=["tenant", "scope", "id"], name="consentful_preference_list"
                    ),
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["tenant", "expires_at"],
                        name="consentful_preference_expiry",
                    ),
                    models.Index(
                        fields=["tenant", "purpose", "id"], name="consentful_preference_served"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "scope", "key"), name="consentful_preference_address"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="consentful_preference_pages"
                    ),
                ],
                "permissions": [
                    ("view_withheld_values", "Can view values while no consent is in force")
                ],
            },
        ),
    ]

"""Restriction, objection, withdrawals that act, consent that is confirmed; the gate asks them."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_consent", "0003_erasure"),
        ("consentful_tenants", "0005_guardians_and_restriction"),
    ]

    operations = [
        migrations.AddField(
            model_name="purpose",
            name="is_confirmed",
            field=models.BooleanField(
                help_text="Consent is asked for first and given with a token (double opt-in).",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="purpose",
            name="is_sharing",
            field=models.BooleanField(
                help_text="Data goes to others: Sec-GPC says no to it.", null=True
            ),
        ),
        migrations.AddField(
            model_name="consentstate",
            name="restricted",
            field=models.CharField(max_length=8, null=True),
        ),
        # Choices and help texts: nothing of the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="consententry",
                    name="decision",
                    field=models.CharField(
                        choices=[
                            ("given", "Given"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                            ("objected", "Objected"),
                            ("objection_lifted", "Lifted"),
                        ],
                        max_length=16,
                    ),
                ),
                migrations.AlterField(
                    model_name="consententry",
                    name="method",
                    field=models.CharField(
                        help_text="user_confirmed, double_opt_in, guardian, operator, gpc, import or system.",
                        max_length=32,
                    ),
                ),
                migrations.AlterField(
                    model_name="consentstate",
                    name="decision",
                    field=models.CharField(
                        choices=[
                            ("given", "Given"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                            ("objected", "Objected"),
                            ("objection_lifted", "Lifted"),
                        ],
                        max_length=16,
                    ),
                ),
                migrations.AlterField(
                    model_name="purpose",
                    name="on_withdrawal",
                    field=models.CharField(
                        choices=[("keep", "Keep"), ("erase", "Erase")],
                        default="keep",
                        max_length=16,
                    ),
                ),
            ]
        ),
        migrations.CreateModel(
            name="Confirmation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("digest", models.CharField(help_text="SHA-256 of the token.", max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("locale", models.CharField(max_length=35)),
                (
                    "consent_until",
                    models.DateTimeField(help_text="When the consent would end.", null=True),
                ),
                ("actor", models.CharField(max_length=200)),
                ("method", models.CharField(max_length=32)),
                ("evidence", models.TextField(null=True)),
                ("at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(help_text="When the token ends.")),
                (
                    "purpose",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="consentful_tenants.subject"
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
                "db_table": "consentful_confirmation",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "subject", "purpose"),
                        name="consentful_confirmation_pending",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Restriction",
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
                    "key",
                    models.CharField(
                        db_collation="C",
                        help_text="Empty for everything.",
                        max_length=200,
                        null=True,
                    ),
                ),
                ("actor", models.CharField(max_length=200)),
                (
                    "method",
                    models.CharField(
                        help_text="user_confirmed, guardian or operator.", max_length=32
                    ),
                ),
                ("evidence", models.TextField(null=True)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="Set by trigger.",
                    ),
                ),
                (
                    "lifted_at",
                    models.DateTimeField(editable=False, help_text="Set by trigger.", null=True),
                ),
                ("lifted_by", models.CharField(max_length=200, null=True)),
                (
                    "lifted_because",
                    models.TextField(help_text="What the person is told.", null=True),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        db_index=False,
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
                "db_table": "consentful_restriction",
                "indexes": [
                    models.Index(fields=["tenant", "subject"], name="consentful_restriction_person")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_by", None)),
                        fields=("tenant", "subject", "key"),
                        name="consentful_restriction_in_force",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Withdrawal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("at", models.DateTimeField(help_text="What was written before is purged.")),
                ("purged_at", models.DateTimeField(null=True)),
                (
                    "purpose",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        db_index=False,
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
                "db_table": "consentful_withdrawal",
                "indexes": [
                    models.Index(fields=["tenant", "subject"], name="consentful_withdrawal_person"),
                    models.Index(
                        condition=models.Q(("purged_at", None)),
                        fields=["tenant", "id"],
                        name="consentful_withdrawal_due",
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "rights.sql").read_text("utf-8")),
    ]

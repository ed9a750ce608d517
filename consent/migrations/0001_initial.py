import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("auth", "__first__"),
        ("consentful_tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Purpose",
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
                    "slug",
                    models.CharField(
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?\\Z",
                                "1 to 64 lower-case letters, digits, hyphens and underscores; a letter or digit at both ends.",
                            )
                        ],
                    ),
                ),
                ("title", models.CharField(max_length=200)),
                (
                    "lawful_basis",
                    models.CharField(
                        choices=[
                            ("consent", "Consent"),
                            ("contract", "Contract"),
                            ("legal_obligation", "Legal Obligation"),
                            ("vital_interest", "Vital Interest"),
                            ("public_interest", "Public Interest"),
                            ("legitimate_interest", "Legitimate Interest"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "required_version",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Consent to an older notice is outdated. 0 while there is no notice.",
                    ),
                ),
                (
                    "on_withdrawal",
                    models.CharField(choices=[("keep", "Keep")], default="keep", max_length=16),
                ),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
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
                "db_table": "consentful_purpose",
                "permissions": [("serve_purpose", "Can serve this purpose as an agent")],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("version", models.PositiveIntegerField()),
                ("locale", models.CharField(help_text="A BCP 47 language tag.", max_length=35)),
                ("text", models.TextField()),
                (
                    "digest",
                    models.CharField(
                        editable=False, help_text="SHA-256 of the text in UTF-8.", max_length=64
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="consentful_tenants.tenant"
                    ),
                ),
                (
                    "purpose",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="consentful_consent.purpose",
                    ),
                ),
            ],
            options={
                "db_table": "consentful_notice",
            },
        ),
        migrations.CreateModel(
            name="ConsentState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "decision",
                    models.CharField(
                        choices=[
                            ("given", "Given"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        max_length=16,
                    ),
                ),
                ("version", models.PositiveIntegerField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("since", models.DateTimeField()),
                ("sequence", models.PositiveIntegerField()),
                ("entry", models.CharField(max_length=32)),
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
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
                (
                    "purpose",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
            ],
            options={
                "db_table": "consentful_consent_state",
            },
        ),
        migrations.CreateModel(
            name="ConsentEntry",
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
                    "sequence",
                    models.PositiveIntegerField(
                        db_default=0,
                        editable=False,
                        help_text="Set by trigger: 1, 2, 3 … for this person and purpose.",
                    ),
                ),
                (
                    "entry",
                    models.CharField(
                        db_default="",
                        editable=False,
                        help_text="Set by trigger: the name outside.",
                        max_length=32,
                    ),
                ),
                (
                    "decision",
                    models.CharField(
                        choices=[
                            ("given", "Given"),
                            ("refused", "Refused"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="The notice version that was shown.", null=True
                    ),
                ),
                ("locale", models.CharField(max_length=35, null=True)),
                ("notice_digest", models.CharField(max_length=64, null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("actor", models.CharField(max_length=200)),
                (
                    "method",
                    models.CharField(
                        help_text="user_confirmed, operator, import or system.", max_length=32
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
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
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
                (
                    "purpose",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="consentful_consent.purpose",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "consent entries",
                "db_table": "consentful_consent_entry",
            },
        ),
        migrations.CreateModel(
            name="PurposeGroupPermission",
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
                    "content_object",
                    models.ForeignKey(
                        db_column="purpose_id",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="auth.group"),
                ),
                (
                    "permission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="auth.permission"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_tenants.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "consentful_purpose_group_permission",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="PurposeUserPermission",
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
                    "content_object",
                    models.ForeignKey(
                        db_column="purpose_id",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_consent.purpose",
                    ),
                ),
                (
                    "permission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="auth.permission"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_tenants.tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "db_table": "consentful_purpose_user_permission",
                "abstract": False,
            },
        ),
        migrations.AddConstraint(
            model_name="purpose",
            constraint=models.UniqueConstraint(
                fields=("tenant", "slug"), name="consentful_purpose_slug"
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=("purpose", "version", "locale"), name="consentful_notice_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="consentstate",
            constraint=models.UniqueConstraint(
                fields=("tenant", "subject", "purpose"), name="consentful_state_address"
            ),
        ),
        migrations.AddConstraint(
            model_name="consententry",
            constraint=models.UniqueConstraint(
                fields=("tenant", "subject", "purpose", "sequence"),
                name="consentful_entry_sequence",
            ),
        ),
        migrations.AlterUniqueTogether(
            name="purposegrouppermission",
            unique_together={("group", "permission", "content_object")},
        ),
        migrations.AlterUniqueTogether(
            name="purposeuserpermission",
            unique_together={("user", "permission", "content_object")},
        ),
        migrations.AddIndex(
            model_name="consententry",
            index=models.Index(fields=["tenant", "id"], name="consentful_entry_pages"),
        ),
        migrations.AddIndex(
            model_name="consentstate",
            index=models.Index(fields=["tenant", "id"], name="consentful_state_pages"),
        ),
        migrations.AddIndex(
            model_name="consentstate",
            index=models.Index(
                fields=["tenant", "expires_at"],
                name="consentful_state_expiry",
                condition=models.Q(expires_at__isnull=False),
            ),
        ),
        migrations.AlterModelOptions(
            name="purposegrouppermission",
            options={
                "verbose_name": "purpose of a group",
                "verbose_name_plural": "purposes of groups",
            },
        ),
        migrations.AlterModelOptions(
            name="purposeuserpermission",
            options={
                "verbose_name": "purpose of an agent",
                "verbose_name_plural": "purposes of agents",
            },
        ),
    ]

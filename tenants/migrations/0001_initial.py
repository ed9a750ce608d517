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
    ]

    operations = [
        migrations.CreateModel(
            name="Tenant",
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
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?\\Z",
                                "1 to 64 lower-case letters, digits, hyphens and underscores; a letter or digit at both ends.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=200)),
                (
                    "external_id",
                    models.CharField(
                        blank=True,
                        help_text="The host's own id of this organisation.",
                        max_length=200,
                        null=True,
                        unique=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "consentful_tenant",
                "permissions": [
                    ("act_as_member", "Can act as member"),
                    ("act_as_agent", "Can act as agent"),
                    ("act_as_operator", "Can act as operator"),
                    ("act_as_auditor", "Can act as auditor"),
                    ("act_as_owner", "Can act as owner"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Subject",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.CharField(db_default="", editable=False, max_length=32)),
                ("salt", models.CharField(db_default="", editable=False, max_length=32)),
                ("external_id", models.CharField(db_collation="C", max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        help_text="The login that is this person, if any.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                "db_table": "consentful_subject",
            },
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "caller",
                    models.CharField(
                        help_text="Keyed digest of the credential's user.", max_length=64
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="Keyed digest of the Idempotency-Key.", max_length=64
                    ),
                ),
                (
                    "request",
                    models.CharField(help_text="Keyed digest of the whole request.", max_length=64),
                ),
                ("answer", models.JSONField(help_text="Status, revision and times. No value.")),
                ("created_at", models.DateTimeField()),
                (
                    "subject",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_tenants.subject",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="consentful_tenants.tenant"
                    ),
                ),
            ],
            options={
                "db_table": "consentful_idempotency_record",
            },
        ),
        migrations.CreateModel(
            name="TenantGroupPermission",
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
                        db_column="tenant_id",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_tenants.tenant",
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
            ],
            options={
                "verbose_name": "role of a group",
                "verbose_name_plural": "roles of groups",
                "db_table": "consentful_tenant_group_permission",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="TenantUserPermission",
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
                        db_column="tenant_id",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="consentful_tenants.tenant",
                    ),
                ),
                (
                    "permission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="auth.permission"
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
                "verbose_name": "role of a user",
                "verbose_name_plural": "roles of users",
                "db_table": "consentful_tenant_user_permission",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Token",
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
                    "on_behalf_of",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="External id of the one subject that an agent reaches with this token.",
                        max_length=200,
                        null=True,
                    ),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        help_text="Confines the token to one tenant.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
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
                "db_table": "consentful_token",
            },
        ),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.UniqueConstraint(
                fields=("tenant", "external_id"), name="consentful_subject_external_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.UniqueConstraint(
                fields=("tenant", "user"), name="consentful_subject_user"
            ),
        ),
        migrations.AddIndex(
            model_name="idempotencyrecord",
            index=models.Index(fields=["tenant", "created_at"], name="consentful_idempotency_age"),
        ),
        migrations.AddConstraint(
            model_name="idempotencyrecord",
            constraint=models.UniqueConstraint(
                fields=("tenant", "caller", "key"), name="consentful_idempotency_key"
            ),
        ),
        migrations.AlterUniqueTogether(
            name="tenantgrouppermission",
            unique_together={("group", "permission", "content_object")},
        ),
        migrations.AlterUniqueTogether(
            name="tenantuserpermission",
            unique_together={("user", "permission", "content_object")},
        ),
        migrations.AddConstraint(
            model_name="token",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("on_behalf_of", None), ("tenant__isnull", False), _connector="OR"
                ),
                name="consentful_token_bound_to_tenant",
                violation_error_message="A token on behalf of a person belongs to one tenant.",
            ),
        ),
    ]

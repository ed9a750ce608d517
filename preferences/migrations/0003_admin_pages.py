"""Indexes by which the admin pages through a tenant, in place of those on the tenant alone."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_consent", "0003_admin_pages"),
        ("consentful_preferences", "0002_guarantees"),
        ("consentful_tenants", "0003_admin_pages"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="preference",
            options={
                "permissions": [
                    ("view_withheld_values", "Can view values while no consent is in force")
                ]
            },
        ),
        migrations.AlterField(
            model_name="preference",
            name="purpose",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="consentful_consent.purpose",
            ),
        ),
        migrations.AlterField(
            model_name="preference",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="consentful_tenants.tenant",
            ),
        ),
        migrations.AddIndex(
            model_name="preference",
            index=models.Index(fields=["tenant", "id"], name="consentful_preference_pages"),
        ),
        migrations.AddIndex(
            model_name="preference",
            index=models.Index(
                fields=["tenant", "purpose", "id"], name="consentful_preference_served"
            ),
        ),
    ]

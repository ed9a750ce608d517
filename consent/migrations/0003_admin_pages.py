"""Indexes by which the admin pages through a tenant, in place of those on the tenant alone."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_consent", "0002_guarantees"),
        ("consentful_tenants", "0003_admin_pages"),
    ]

    operations = [
        migrations.AlterField(
            model_name="consententry",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="consentful_tenants.tenant",
            ),
        ),
        migrations.AlterField(
            model_name="consentstate",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="consentful_tenants.tenant",
            ),
        ),
        migrations.AddIndex(
            model_name="consententry",
            index=models.Index(fields=["tenant", "id"], name="consentful_entry_pages"),
        ),
        migrations.AddIndex(
            model_name="consentstate",
            index=models.Index(fields=["tenant", "id"], name="consentful_state_pages"),
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

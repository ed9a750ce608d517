"""Indexes by which the admin pages through a tenant, in place of those on the tenant alone."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_tenants", "0002_guarantees"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="subject",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                to="consentful_tenants.tenant",
            ),
        ),
        migrations.AddIndex(
            model_name="subject",
            index=models.Index(fields=["tenant", "id"], name="consentful_subject_pages"),
        ),
    ]

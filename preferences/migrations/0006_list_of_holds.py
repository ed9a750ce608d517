"""The index by which the admin lists what is held, made beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_preferences", "0005_checked_holds")]

    operations = [
        # What an interrupted run left behind is invalid, and in the way.
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS "consentful_preference_held";',
            migrations.RunSQL.noop,
        ),
        AddIndexConcurrently(
            model_name="preference",
            index=models.Index(
                fields=["tenant", "id"],
                name="consentful_preference_held",
                condition=models.Q(held_at__isnull=False),
            ),
        ),
    ]

"""The index by which archived records are listed, made beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_preferences", "0007_archive")]

    operations = [
        # What an interrupted run left behind is invalid, and in the way.
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS "consentful_preference_retired";',
            migrations.RunSQL.noop,
        ),
        AddIndexConcurrently(
            model_name="preference",
            index=models.Index(
                fields=["tenant", "scope", "id"],
                name="consentful_preference_retired",
                condition=models.Q(archived_at__isnull=False),
            ),
        ),
    ]

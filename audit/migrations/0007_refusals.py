"""The index by which refusals are counted, made beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_audit", "0006_partitions")]

    operations = [
        # What an interrupted run left behind is invalid, and in the way.
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS "consentful_event_denied";', migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="event",
            index=models.Index(
                fields=["tenant_id", "id"],
                name="consentful_event_denied",
                condition=models.Q(outcome="denied"),
            ),
        ),
    ]

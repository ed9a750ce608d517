"""Indexes by which an erasure finds the events that name a person, made beside readers and writers."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_audit", "0004_erasure")]

    operations = [
        # What an interrupted run left behind is invalid, and in the way.
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS "consentful_event_actor";', migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="event",
            index=models.Index(fields=["tenant_id", "actor_id"], name="consentful_event_actor"),
        ),
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS "consentful_event_behalf";', migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="event",
            index=models.Index(
                fields=["tenant_id", "on_behalf_of"],
                name="consentful_event_behalf",
                condition=models.Q(on_behalf_of__isnull=False),
            ),
        ),
    ]

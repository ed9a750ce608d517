"""The index by which refusals are counted, made beside readers and writers."""

from django.db import migrations, models

from audit.indexes import AddEventIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_audit", "0006_partitions")]

    operations = [
        AddEventIndex(
            model_name="event",
            index=models.Index(
                fields=["tenant_id", "id"],
                name="consentful_event_denied",
                condition=models.Q(outcome="denied"),
            ),
        ),
    ]

"""When a record was archived; the functions that ask for it stand in `sql/` since the beginning."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("consentful_preferences", "0006_list_of_holds")]

    operations = [
        migrations.AddField(
            model_name="preference",
            name="archived_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]

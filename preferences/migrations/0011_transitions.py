"""Which steps a value's status may take; the functions that ask stand in `sql/` since the beginning."""

from django.db import migrations

import preferences.models


class Migration(migrations.Migration):
    dependencies = [("consentful_preferences", "0010_words_of_old_records")]

    operations = [
        migrations.AddField(
            model_name="definition",
            name="transitions",
            field=preferences.models.JSONTextField(
                blank=True,
                help_text="For each status of a value, those that may follow it.",
                null=True,
            ),
        ),
    ]

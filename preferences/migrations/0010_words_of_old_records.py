"""The words of the records that stood before the trigger did, in batches beside readers and writers."""

from typing import Any

from django.db import migrations

BATCH = 500


def note_words(apps: Any, schema_editor: Any) -> None:
    """Go through the records by id. FOR SHARE: what somebody changes just then is waited for."""
    last = 0
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(
                "WITH piece AS MATERIALIZED ("
                " SELECT p AS record FROM consentful_preference p WHERE p.id > %s"
                " ORDER BY p.id LIMIT %s FOR SHARE), noted AS ("
                " INSERT INTO consentful_preference_words (tenant_id, preference_id, words)"
                " SELECT (record).tenant_id, (record).id, words FROM piece,"
                "  LATERAL consentful_words(record) AS words"
                " WHERE (record).archived_at IS NULL AND words IS NOT NULL"
                " ON CONFLICT DO NOTHING)"
                " SELECT max((record).id) FROM piece",
                [last, BATCH],
            )
            (last,) = cursor.fetchone()
            if last is None:
                return


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("consentful_preferences", "0009_words")]

    operations = [migrations.RunPython(note_words, migrations.RunPython.noop)]

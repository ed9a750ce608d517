"""
How long a migration may wait for a lock before it gives up.

A migration that waits for a table makes everyone wait who comes after it, even readers. Giving up
is harmless: what it did is undone, and it can be run again.
"""

from django.db import connections

#: Nobody who queues behind a migration shall wait for a second.
PATIENCE = "750ms"


def bound_waits(*, using: str) -> None:
    """Bound the waits of the session that migrates, where nobody has done so with another time."""
    connection = connections[using]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('lock_timeout', %s, false)"
                " WHERE current_setting('lock_timeout') = '0'",
                [PATIENCE],
            )


def unbound_waits(*, using: str) -> None:
    """Take the bound back; requests have one of their own (`consentful_enter`)."""
    connection = connections[using]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")

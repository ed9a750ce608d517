"""Capture functions, which name the columns of their tables and follow them through migrations."""

from django.db import connections

#: The tables whose function no longer is what the columns ask for, or was altered by hand.
OUTDATED = (
    "SELECT c.target::text, c.noun, c.verb_of_update, c.verb_column"
    " FROM consentful_captured() c JOIN pg_proc p ON p.oid = to_regproc(c.capture)"
    " WHERE p.prosrc <> consentful_capture_body(c.target, c.noun, c.verb_of_update, c.verb_column)"
)


def follow_columns(*, using: str) -> None:
    """
    Compile the capture functions anew whose tables have gained or lost a column.

    Does nothing before the functions are there, and for a login that does not own them. A migration
    that fills a column which it has just added calls `consentful_compile` itself in between.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) > 0 FROM pg_proc WHERE oid = to_regproc('consentful_captured')"
            " AND pg_has_role(proowner, 'USAGE')"
        )
        if not cursor.fetchone()[0]:
            return
        cursor.execute(OUTDATED)
        for outdated in cursor.fetchall():
            cursor.execute("SELECT consentful_compile(%s::regclass, %s, %s, %s)", outdated)

"""Migration operations for the table of events, which may be in parts: indexes made beside its users."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Model

from audit.partitions import has_parts

# An index that an interrupted run left behind is not valid, and in the way.
_IS_INVALID = """
    SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid)
"""
_PARTS = """
    SELECT part.relname, EXISTS (
        SELECT FROM pg_index AS own JOIN pg_inherits AS link ON link.inhrelid = own.indexrelid
        WHERE own.indrelid = part.oid AND link.inhparent = to_regclass(%s))
    FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
    WHERE inhparent = %s::regclass ORDER BY part.oid
"""


class AddEventIndex(AddIndexConcurrently):
    """
    Add an index to the table of events, in parts or not; cut short, it can be run again.

    PostgreSQL makes no index of a divided table concurrently: each part gets its own, and the index
    of the whole, which holds nothing, takes them in. It counts once it has all of them.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if has_parts(using=schema_editor.connection.alias):
            self._ensure_not_in_transaction(schema_editor)
            self._add_to_parts(model, schema_editor)
            return
        if _is(schema_editor, _IS_INVALID, self.index.name):
            schema_editor.execute(
                f"DROP INDEX CONCURRENTLY {_quoted(schema_editor, self.index.name)}"
            )
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if has_parts(using=schema_editor.connection.alias):
            # There is no other way, and it takes no longer than the lock.
            schema_editor.execute(f"DROP INDEX {_quoted(schema_editor, self.index.name)}")
            return
        super().database_backwards(app_label, schema_editor, from_state, to_state)

    def _add_to_parts(self, model: type[Model], editor: BaseDatabaseSchemaEditor) -> None:
        table, whole = model._meta.db_table, self.index.name
        self._create(
            model, editor, "CREATE INDEX IF NOT EXISTS", whole, f"ONLY {_quoted(editor, table)}"
        )
        with editor.connection.cursor() as cursor:
            cursor.execute(_PARTS, [whole, table])
            parts = list(cursor.fetchall())
        for part, is_there in parts:
            if is_there:
                continue
            name = f"{whole}{part.removeprefix(table)}"
            if _is(editor, _IS_INVALID, name):
                editor.execute(f"DROP INDEX CONCURRENTLY {_quoted(editor, name)}")
            self._create(
                model,
                editor,
                "CREATE INDEX CONCURRENTLY IF NOT EXISTS",
                name,
                _quoted(editor, part),
            )
            editor.execute(
                f"ALTER INDEX {_quoted(editor, whole)} ATTACH PARTITION {_quoted(editor, name)}"
            )

    def _create(
        self, model: type[Model], editor: BaseDatabaseSchemaEditor, how: str, name: str, table: str
    ) -> None:
        statement: Any = self.index.create_sql(model, editor)
        statement.template = statement.template.replace("CREATE INDEX", how, 1)
        statement.parts |= {"name": _quoted(editor, name), "table": table}
        editor.execute(statement)


def _quoted(editor: BaseDatabaseSchemaEditor, name: str) -> str:
    return str(editor.quote_name(name))


def _is(editor: BaseDatabaseSchemaEditor, question: str, name: str) -> bool:
    with editor.connection.cursor() as cursor:
        cursor.execute(question, [name])
        return bool(cursor.fetchone()[0])

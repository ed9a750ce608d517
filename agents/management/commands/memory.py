"""Facts of a project on the terminal: set, get, list, delete, clear, cleanup and stats."""

import getpass
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from agents.checkouts import find_scope
from agents.interchange import caller_of_terminal, check_shared, shared_records
from preferences.bulk import delete_scope
from preferences.records import Record
from preferences.selectors import get_preference, list_preferences
from preferences.services import delete_preference, purge_expired, set_preference
from preferences.values import check_deadline, check_revision
from preferences.views import normalize_prefix
from tenants.callers import Caller
from tenants.commands import ServiceCommand
from tenants.documents import JSONValue, read
from tenants.exceptions import InvalidJSON, InvalidKey, NotFound
from tenants.models import Tenant
from tenants.scopes import Scope
from tenants.services import get_tenant
from tenants.times import format_time
from tenants.units import unit_of_work

BATCH = 1000


class Command(ServiceCommand):
    help = (
        "Read and write the facts of a project on the database itself. The scope is the repository"
        " of the git checkout that this runs in, unless another is named."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="slug; may be left out where there is only one")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--scope", help="a shared scope, e.g. project::payments")
        where.add_argument(
            "--branch", action="store_true", help="the branch that is checked out, not all of them"
        )
        verbs = parser.add_subparsers(dest="verb", required=True)

        one = verbs.add_parser("set", help="store a fact, whatever stands there")
        one.add_argument("key")
        one.add_argument("value", help="JSON; what is none is taken as text")
        one.add_argument("--text", action="store_true", help="take the value as text, as it is")
        one.add_argument("--revision", help="replace this version alone")
        one.add_argument("--ttl", type=int, metavar="SECONDS", help="gone after so long")
        one.add_argument("--tag", action="append", help="may be given several times")

        one = verbs.add_parser("get", help="print one fact")
        one.add_argument("key")
        one = verbs.add_parser("list", help="print the facts of the scope")
        one.add_argument("--key-prefix", help="only keys that begin so")
        one = verbs.add_parser("delete", help="delete one fact")
        one.add_argument("key")
        one.add_argument("--revision", help="delete this version alone")
        one = verbs.add_parser("clear", help="delete every fact of the scope")
        one.add_argument("--yes", action="store_true", help="do not ask")
        verbs.add_parser("cleanup", help="delete what has expired, in every scope")
        verbs.add_parser("stats", help="count the facts of every shared scope")

    def run(self, **options: Any) -> None:
        tenant = self.find_tenant(options["tenant"])
        verb: Callable[..., None] = getattr(self, f"run_{options['verb']}")
        if options["verb"] in ("cleanup", "stats"):
            scope = Scope.parse("global")
        elif options["scope"] is not None:
            scope = check_shared(Scope.parse(options["scope"], creating=True))
        else:
            scope = find_scope(Path.cwd(), of_branch=options["branch"])
        verb(caller_of_terminal(tenant, f"terminal:{getpass.getuser()}"), scope, options)

    def find_tenant(self, slug: str | None) -> Tenant:
        """Return the tenant that is named, or the only one."""
        if slug is not None:
            return get_tenant(slug=slug)
        try:
            (tenant,) = Tenant.objects.all()[:2]
        except ValueError:
            raise NotFound("Say which tenant: --tenant SLUG.") from None
        return tenant

    # Verbs -------------------------------------------------------------------------------------

    def run_set(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        revision = options["revision"]
        outcome = set_preference(
            caller=caller, scope=scope, key=options["key"],
            value=_value(options["value"], is_text=options["text"]),
            revision=revision, upsert=revision is None, ttl_seconds=_ttl(options["ttl"]),
            tags=options["tag"],
        )  # fmt: skip
        self.tell("Created." if outcome.is_created else "Replaced.")
        self.show([outcome.record])

    def run_get(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        self.show([get_preference(caller=caller, scope=scope, key=options["key"])])

    def run_list(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            found, _ = list_preferences(
                caller=caller, scopes=[scope], key_prefix=_prefix(options["key_prefix"])
            )
        self.show(found)
        self.tell(f"{len(found)} in {scope}.")

    def run_delete(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        revision = options["revision"]
        delete_preference(
            caller=caller, scope=scope, key=options["key"],
            revisions=None if revision is None else [check_revision(revision)],
        )  # fmt: skip
        self.tell(f"Deleted {scope}/{options['key']}.")

    def run_clear(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        question = f"Delete every fact of {scope}? Type its name to go on: "
        if not options["yes"] and self.ask(question) != str(scope):
            raise CommandError("Nothing was deleted.")
        total = 0
        while count := delete_scope(
            tenant_id=caller.tenant_id, scope=scope, key_prefix="", actor=caller.actor, most=BATCH
        ):
            total += count
        self.tell(f"Deleted {total} in {scope}.")
        self.stdout.write(str(total))

    def run_cleanup(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        total = 0
        while count := purge_expired(
            tenant_id=caller.tenant_id, actor=caller.actor, most=BATCH
        ):  # what others work on is left for the next run
            total += count
        self.tell(f"Deleted {total} that had expired.")
        self.stdout.write(str(total))

    def run_stats(self, caller: Caller, scope: Scope, options: dict[str, Any]) -> None:
        tenant = get_tenant(slug=caller.tenant)
        with shared_records(tenant=tenant, actor=caller.actor) as (records, _):
            counts = Counter(record.scope for record in records)
        if self.stdout.isatty():
            table = Table("scope", "facts")
            for name, number in sorted(counts.items()):
                table.add_row(name, str(number))
            Console().print(table, markup=False)
        else:
            self.stdout.write(json.dumps(dict(sorted(counts.items())), ensure_ascii=False))

    def ask(self, question: str) -> str:
        """Return what the person types; nothing where nobody is there to."""
        try:
            return input(question)
        except EOFError:
            return ""

    def show(self, records: list[Record]) -> None:
        """Print records: a table for a person, one JSON document a line for a program."""
        if not self.stdout.isatty():
            for record in records:
                self.stdout.write(record.as_json())
            return
        table = Table("key", "value", "tags", "written", "revision")
        for record in records:
            table.add_row(
                record.key, _visible(record.value_text), _visible(", ".join(record.tags)),
                f"{format_time(record.updated_at)} by {record.actor}", record.revision,
            )  # fmt: skip
        Console().print(table, markup=False)


def _visible(text: str) -> str:
    """Return text without what a terminal would obey instead of showing it."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def _value(text: str, *, is_text: bool) -> JSONValue:
    if is_text:
        return text
    try:
        return read(text.encode("utf-8", "surrogateescape"))
    except InvalidJSON:
        return text


def _prefix(text: str | None) -> str | None:
    try:
        (text or "").encode()
    except UnicodeEncodeError:  # a terminal may send what is no UTF-8
        raise InvalidKey("No key begins so: it is not UTF-8.", pointer="/key_prefix") from None
    return normalize_prefix(text)


def _ttl(seconds: int | None) -> int | None:
    return None if seconds is None else check_deadline({"ttl_seconds": seconds}).ttl_seconds

"""Write shared scopes out, as JSON lines or as Portable AI Memory."""

from typing import Any

from django.core.management.base import CommandParser

from agents.interchange import export_lines, shared_records
from agents.portable import export_document
from audit.actors import SYSTEM
from tenants.commands import ServiceCommand
from tenants.scopes import Scope
from tenants.services import get_tenant


class Command(ServiceCommand):
    help = "Write the live records of shared scopes to standard output: all of them, or nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        parser.add_argument(
            "--scope", action="append", help="a shared scope; may be repeated; none: all of them"
        )
        parser.add_argument("--format", choices=("jsonl", "portable"), default="jsonl")

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        scopes = options["scope"] and [Scope.parse(text) for text in options["scope"]]
        if options["format"] == "portable":
            with shared_records(tenant=tenant, actor=SYSTEM, scopes=scopes) as (records, at):
                self.stdout.write(export_document(tenant=tenant.slug, records=records, at=at))
            return
        for line in export_lines(tenant=tenant, actor=SYSTEM, scopes=scopes):
            self.stdout.write(line)

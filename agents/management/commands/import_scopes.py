"""Read shared scopes back in, from JSON lines or from Portable AI Memory."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents.interchange import import_items, read_lines
from agents.portable import read_document
from audit.actors import SYSTEM
from tenants.commands import ServiceCommand
from tenants.exceptions import ValidationError
from tenants.scopes import Scope
from tenants.services import get_tenant


class Command(ServiceCommand):
    help = "Store the records of a file, or none of them. Begin with --dry-run."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        parser.add_argument(
            "file", type=Path, help="what export_scopes wrote, or another's document"
        )
        parser.add_argument("--format", choices=("jsonl", "portable"), default="jsonl")
        parser.add_argument(
            "--into", metavar="SCOPE", help="where memories go that another service wrote"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be stored")

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        try:
            raw = options["file"].read_bytes()
        except OSError as fault:
            raise ValidationError(f"The file cannot be read: {fault.strerror}.") from fault
        into = None if options["into"] is None else Scope.parse(options["into"], creating=True)
        items = (
            read_document(raw, into=into)
            if options["format"] == "portable"
            else read_lines(raw.splitlines())
        )
        steps = import_items(
            tenant=tenant,
            actor=SYSTEM.because(f"import of {options['file'].name}"[:500]),
            items=items,
            is_dry_run=options["dry_run"],
        )
        self.show_steps(steps, is_dry_run=options["dry_run"])

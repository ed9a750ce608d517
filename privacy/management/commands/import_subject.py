"""Read a person's export back in."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from privacy.documents import read_document
from privacy.imports import import_person
from tenants.commands import ServiceCommand
from tenants.exceptions import ValidationError
from tenants.services import get_tenant


class Command(ServiceCommand):
    help = "Store the consents and records of a person's export, or nothing of it. Begin with --dry-run."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        parser.add_argument("file", type=Path, help="the export, as JSON")
        parser.add_argument("--subject", help="the person's id here, where it is another one")
        parser.add_argument("--dry-run", action="store_true", help="say what would be stored")

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        try:
            raw = options["file"].read_bytes()
        except OSError as fault:
            raise ValidationError(f"The file cannot be read: {fault.strerror}.") from fault
        document = read_document(raw)
        steps = import_person(
            tenant=tenant,
            document=document,
            subject=options["subject"],
            is_dry_run=options["dry_run"],
        )
        self.show_steps(steps, is_dry_run=options["dry_run"])

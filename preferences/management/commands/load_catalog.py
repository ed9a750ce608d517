"""Load a tenant's catalogue from a file."""

from pathlib import Path
from typing import Any

from preferences.catalog import load_catalog
from tenants.commands import ServiceCommand
from tenants.documents import read
from tenants.exceptions import ValidationError
from tenants.services import get_tenant


class Command(ServiceCommand):
    help = "Load purposes, notices, definitions and the rule for undeclared keys. Idempotent."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")
        parser.add_argument("file", type=Path)
        parser.add_argument("--dry-run", action="store_true", help="say what would change")

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        try:
            raw = options["file"].read_bytes()
        except OSError as fault:
            raise ValidationError(f"The file cannot be read: {fault.strerror}.") from fault
        changes = load_catalog(tenant=tenant, catalog=read(raw), is_dry_run=options["dry_run"])
        lines = changes.lines()
        for line in lines:
            self.stdout.write(line)
        done = "would change" if options["dry_run"] else "changed"
        self.tell(f"{len(lines)} entries of the catalogue of {tenant.slug} {done}.")

"""Seal what happened."""

from typing import Any

from audit.sealing import seal
from tenants.commands import ServiceCommand
from tenants.trail import list_trails
from tenants.units import database


class Command(ServiceCommand):
    help = "Add every event that can be sealed to its tenant's hash chain; print how many."

    def run(self, **options: Any) -> None:
        trails = list_trails()
        sealed = sum(seal(tenant_id, using=database()) for tenant_id in trails)
        self.tell(f"Sealed {sealed} events in {len(trails)} trails.")
        self.stdout.write(str(sealed))

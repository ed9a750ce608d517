"""Seal what happened."""

from typing import Any

from django.core.management.base import CommandError

from tenants.commands import ServiceCommand
from tenants.trail import seal_trails


class Command(ServiceCommand):
    help = "Add every event that can be sealed to its tenant's hash chain; print how many."
    is_job = True

    def run(self, **options: Any) -> None:
        sealed, stuck = seal_trails()
        self.tell(f"Sealed {sealed} events.")
        self.stdout.write(str(sealed))
        if stuck:
            raise CommandError(
                f"The chain of {', '.join(stuck)} cannot go on: verify_audit tells why."
            )

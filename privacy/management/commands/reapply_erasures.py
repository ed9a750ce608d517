"""Forget again what a restored backup brought back."""

from typing import Any

from django.core.management.base import CommandError

from audit.stores import StoreFailed
from privacy.restores import reapply
from privacy.suppressions import SuppressionsRefused, configured_list
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "After a restore: erase again what was erased since the backup, and withdraw again what was"
        " withdrawn, by the list outside the database. Doing it again changes nothing. Prints how many"
        " erasures and withdrawals were done again."
    )

    def run(self, **options: Any) -> None:
        kept = configured_list()
        if kept is None:
            raise CommandError(
                "Nothing says where the list of what must not return is kept: set"
                " CONSENTFUL_SUPPRESSIONS."
            )
        try:
            erased, withdrawn = reapply(kept)
        except (StoreFailed, SuppressionsRefused) as fault:
            raise CommandError(str(fault)) from fault
        self.tell("The database holds nothing any more that must not return.")
        self.stdout.write(f"{erased}\t{withdrawn}")

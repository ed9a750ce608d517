"""Cut what is older than the trail has to be kept."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import ProgrammingError

from audit.actors import SYSTEM
from audit.exceptions import ProofError
from audit.stores import configured_store
from tenants.commands import ServiceCommand
from tenants.proof import trim_trail
from tenants.trail import find_trails


class Command(ServiceCommand):
    help = (
        "Cut the oldest part of each trail, under a signed checkpoint, so that the rest still"
        " verifies. Needs the login that owns the tables, as migrate does. Prints how many events"
        " are gone."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant", nargs="?", help="only this one; all of them by default")
        parser.add_argument(
            "--keep-days", type=int, required=True, metavar="N", help="days to keep, at least 1"
        )

    def run(self, **options: Any) -> None:
        days = options["keep_days"]
        if not 1 <= days <= 36_500:
            raise CommandError("--keep-days is a number from 1 to 36500.", returncode=2)
        total, kept = 0, configured_store()
        for tenant_id, name in find_trails(options["tenant"]).items():
            try:
                dropped = trim_trail(
                    tenant_id, name, keep=timedelta(days=days), actor=SYSTEM, kept=kept
                )
            except ProofError as fault:
                raise CommandError(f"{name}: {fault}") from fault
            except ProgrammingError as fault:
                raise CommandError(
                    "Only the login that owns the tables may cut a trail: run this as you run"
                    " migrate."
                ) from fault
            self.tell(f"{name}: {dropped} events older than {days} days are gone.")
            total += dropped
        self.stdout.write(str(total))

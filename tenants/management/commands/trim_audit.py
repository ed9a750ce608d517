"""Cut what is older than the trail has to be kept."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import ProgrammingError

from audit.actors import SYSTEM
from audit.exceptions import ProofError
from audit.stores import configured_store
from tenants.commands import ServiceCommand
from tenants.proof import cut_trail, drop_cut_events, drop_cut_parts
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
        kept, trails = configured_store(), find_trails(options["tenant"])
        try:
            for tenant_id, name in trails.items():
                try:
                    cut_trail(tenant_id, name, keep=timedelta(days=days), actor=SYSTEM, kept=kept)
                except ProofError as fault:
                    raise CommandError(f"{name}: {fault}") from fault
            total = drop_cut_parts()
            if total:
                self.tell(f"{total} events of all trails went with the parts of their table.")
            for tenant_id, name in trails.items():
                dropped = drop_cut_events(tenant_id)
                self.tell(f"{name}: {dropped} events older than {days} days are gone.")
                total += dropped
        except ProgrammingError as fault:
            raise CommandError(
                "Only the login that owns the tables may cut a trail: run this as you run migrate."
            ) from fault
        self.stdout.write(str(total))

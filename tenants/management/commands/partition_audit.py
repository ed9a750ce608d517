"""Let the table of events grow in parts."""

from typing import Any

from django.core.management.base import CommandError
from django.db import OperationalError, ProgrammingError

from audit.partitions import split
from tenants.commands import ServiceCommand
from tenants.proof import as_owner
from tenants.units import database

#: More events than are written while the command runs.
AHEAD = 1_000_000


class Command(ServiceCommand):
    help = (
        "Close the part of the table of events that is being filled and begin the next one, so that"
        " trim_audit can drop old parts whole. Run it once a month; the first time, the table as it"
        " stands becomes the first part. Needs the login that owns the tables, as migrate does."
        " Prints the name of the new part."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--ahead", type=int, default=AHEAD, metavar="N",
            help="the closed part still takes so many events: more than are written meanwhile"
            f" (default: {AHEAD:,})",
        )  # fmt: skip

    def run(self, **options: Any) -> None:
        if not 1 <= options["ahead"] <= 10**12:
            raise CommandError("--ahead is a number from 1 to a million millions.", returncode=2)
        try:
            with as_owner():
                self.stdout.write(split(ahead=options["ahead"], using=database()))
        except ProgrammingError as fault:
            raise CommandError(
                "Only the login that owns the tables may divide them: run this as you run migrate."
            ) from fault
        except OperationalError as fault:
            raise CommandError(
                "The table was in use for too long: nothing was changed, run this again."
            ) from fault

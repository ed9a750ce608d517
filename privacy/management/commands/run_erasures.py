"""Ask whoever is yet to erase something, and add to the list of what must not return."""

from typing import Any

from privacy.jobs import run_erasures, suppress_all
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Ask the holders of unfinished erasures that are due, and add what was withdrawn to the list"
        " of what must not return with a backup. Prints how many erasures are unfinished."
    )
    is_job = True

    def run(self, **options: Any) -> None:
        is_open = run_erasures()
        withdrawn = suppress_all()
        self.tell(f"Added {withdrawn} withdrawals to the list of what must not return.")
        self.stdout.write(str(is_open))

"""Purge, seal and finish erasures, once or for as long as the service runs."""

import logging
import signal
import threading
import time
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections

from audit.stores import StoreFailed, configured_store
from preferences.jobs import purge_all
from privacy.jobs import run_erasures, suppress_all
from privacy.suppressions import SuppressionsRefused
from privacy.withdrawals import purge_all_withdrawn
from tenants.commands import ServiceCommand
from tenants.observation import JOBS, describe, note
from tenants.proof import write_due_checkpoints
from tenants.trail import list_trails, seal_trails

#: Seconds between two looks at the checkpoints.
CHECKPOINTS = 300.0


class Command(ServiceCommand):
    help = (
        "Purge what has expired, and what a purpose held that erases on withdrawal; ask whoever is yet"
        " to erase something; seal the trail and keep a signed checkpoint of it every hour; with"
        " --loop, every few seconds."
    )
    is_job = True

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--loop", action="store_true")
        parser.add_argument("--seconds", type=float, default=5.0, help="pause of the loop")

    def run(self, **options: Any) -> None:
        if not options["loop"]:
            purged = purge_all()
            withdrawn = purge_all_withdrawn()
            self.finish_erasures()
            sealed, stuck = seal_trails()
            self.tell(f"Purged {purged} expired records, sealed {sealed} events.")
            if withdrawn:
                self.tell(f"Began {withdrawn} erasures of what was withdrawn.")
            self.warn(stuck)
            self.write_checkpoints()
            return
        stop, due = threading.Event(), 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            try:
                purge_all(most_batches=10)
                purge_all_withdrawn(most=100)
                self.finish_erasures()
                self.warn(seal_trails()[1])
                if time.monotonic() >= due:
                    self.write_checkpoints()
                    due = time.monotonic() + CHECKPOINTS
            except (DatabaseError, InterfaceError) as fault:
                # The store is away: the next round finds it again.
                note(JOBS, logging.WARNING, "job_refused", job="housekeep", **describe(fault))
            close_old_connections()
            stop.wait(options["seconds"])

    def finish_erasures(self) -> None:
        """Ask the holders that are due, and list what must not return with a backup."""
        run_erasures()
        try:
            suppress_all()
        except (StoreFailed, SuppressionsRefused) as fault:
            self.tell(f"The list of what must not return was not added to. {fault}")

    def write_checkpoints(self) -> None:
        """Write the checkpoints that are due, where the settings say that they are kept."""
        kept = configured_store()
        for line in write_due_checkpoints(list_trails(), kept=kept) if kept else ():
            self.tell(f"No checkpoint was written. {line}")

    def warn(self, stuck: list[str]) -> None:
        """Name the trails whose chain cannot go on: somebody wrote into them."""
        for name in stuck:
            self.tell(f"The trail of {name} cannot be sealed: run verify_audit {name}.")

"""Purge and seal, once or for as long as the service runs."""

import logging
import signal
import threading
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections

from preferences.jobs import purge_all
from tenants.commands import ServiceCommand
from tenants.observation import JOBS, describe, note
from tenants.trail import seal_trails


class Command(ServiceCommand):
    help = "Purge what has expired and seal the trail; with --loop, every few seconds."
    is_job = True

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--loop", action="store_true")
        parser.add_argument("--seconds", type=float, default=5.0, help="pause of the loop")

    def run(self, **options: Any) -> None:
        if not options["loop"]:
            purged = purge_all()
            sealed, stuck = seal_trails()
            self.tell(f"Purged {purged} expired records, sealed {sealed} events.")
            self.warn(stuck)
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            try:
                purge_all(most_batches=10)
                self.warn(seal_trails()[1])
            except (DatabaseError, InterfaceError) as fault:
                # The store is away: the next round finds it again.
                note(JOBS, logging.WARNING, "job_refused", job="housekeep", **describe(fault))
            close_old_connections()
            stop.wait(options["seconds"])

    def warn(self, stuck: list[str]) -> None:
        """Name the trails whose chain cannot go on: somebody wrote into them."""
        for name in stuck:
            self.tell(f"The trail of {name} cannot be sealed: run verify_audit {name}.")

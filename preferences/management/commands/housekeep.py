"""Purge and seal, once or for as long as the service runs."""

import signal
import threading
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections

from preferences.jobs import purge_all, seal_all
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Purge what has expired and seal the trail; with --loop, every few seconds."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--loop", action="store_true")
        parser.add_argument("--seconds", type=float, default=5.0, help="pause of the loop")

    def run(self, **options: Any) -> None:
        if not options["loop"]:
            purged, sealed = purge_all(), seal_all()
            self.tell(f"Purged {purged} expired records, sealed {sealed} events.")
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            try:
                purge_all(most_batches=10)
                seal_all()
            except (DatabaseError, InterfaceError):
                # The store is away: the next round finds it again.
                self.tell("Housekeeping waits for the database.")
            close_old_connections()
            stop.wait(options["seconds"])

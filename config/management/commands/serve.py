"""Serves the API, the admin and the documentation, with housekeeping, until it is told to stop."""

import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server import Server

from config.environment import is_loopback
from config.health import find_missing_migrations
from config.housekeeping import COMMANDS, Housekeeper
from config.lifeline import VARIABLE
from config.metrics import SHARED
from config.tracing import find_exporter
from tenants.observation import JOBS, note

#: Threads of all workers together: each one keeps a connection to the database.
MOST_THREADS = 160

#: Seconds that requests in flight have for their end.
PATIENCE = 10

LOGGING: dict[str, Any] = {
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "generic",
            "stream": "ext://sys.stderr",
        }
    },
    # Its access log would name paths, and so people; every request has its line in ours.
    "loggers": {"_granian": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}


class Command(BaseCommand):
    help = __doc__
    # Run below, with the checks of the database, once it is known to be complete.
    requires_system_checks: ClassVar[list[str]] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-housekeeping",
            action="store_true",
            help="leave `housekeep` to cron, or to another process",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with counting_together():
            self.serve(is_keeping_house=not options["no_housekeeping"])

    def serve(self, *, is_keeping_house: bool) -> None:
        """Check what must be there, then serve until a signal comes."""
        # Until the server listens to signals itself: leave through the usual way out, which
        # stops the embedded database.
        signal.signal(signal.SIGTERM, _leave)
        self.refuse_to_expose_development()
        self.refuse_taken_port()
        self.refuse_missing_exporter()
        if missing := find_missing_migrations():
            raise CommandError(
                f"The database lacks {len(missing)} migrations, {missing[0]} first:"
                " run `manage.py migrate`."
            )
        self.check(databases=["default"])
        # Workers are forked, and two processes must not speak through one connection. This
        # one goes on to hold the embedded database, so that it outlives every worker.
        connections.close_all()

        os.environ[VARIABLE] = str(os.getpid())
        beside = [Housekeeper(name) for name in COMMANDS]
        server = self.build_server()

        @server.on_startup
        def started() -> None:
            # A closed terminal would otherwise mean "restart the workers".
            signal.signal(signal.SIGHUP, server.signal_handler_interrupt)
            if is_keeping_house:
                for process in beside:
                    process.start()
            self.announce()

        try:
            server.serve()
        finally:
            for process in beside:
                process.ask_to_end()
            for process in beside:
                process.stop()
        self.tell("Consentful has stopped.", "stopped")

    def refuse_to_expose_development(self) -> None:
        if settings.IS_DEVELOPMENT and not is_loopback(settings.HOST):
            raise CommandError(
                f"To listen on {settings.HOST}, set SECRET_KEY and ALLOWED_HOSTS: without them,"
                " values for development apply, which anyone can know."
            )

    def refuse_taken_port(self) -> None:
        # The server's own sockets share a port with anyone who asks for it, on Linux.
        try:
            family, _, _, _, address = socket.getaddrinfo(
                settings.HOST, settings.PORT, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {settings.HOST} port {settings.PORT}: {error.strerror}."
                " Set HOST or PORT."
            ) from error

    def refuse_missing_exporter(self) -> None:
        # A worker would find out by itself, after the service has said that it listens.
        try:
            find_exporter()
        except ImproperlyConfigured as fault:
            raise CommandError(str(fault)) from fault

    def build_server(self) -> Server:
        return Server(
            "config.wsgi:application",
            address=settings.HOST,
            port=settings.PORT,
            interface=Interfaces.WSGI,
            http=HTTPModes.http1,
            websockets=False,
            workers=settings.WEB_CONCURRENCY,
            blocking_threads=max(4, min(32, MOST_THREADS // settings.WEB_CONCURRENCY)),
            blocking_threads_idle_timeout=600,
            # Without it, one dead worker ends the service.
            respawn_failed_workers=True,
            workers_kill_timeout=PATIENCE,
            log_access=False,
            log_level=LogLevels.error,
            log_dictconfig=LOGGING,
            working_dir=settings.BASE_DIR,
        )

    def announce(self) -> None:
        host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
        address = f"http://{host}:{settings.PORT}"
        self.tell(
            f"Consentful listens on {address}/api/v1/ (Ctrl-C stops it).\n"
            f"The admin is at {address}/admin/, the API's documentation at\n"
            f"{address}/api/v1/docs/.",
            "serving",
            listens=address,
        )

    def tell(self, words: str, event: str, **facts: str) -> None:
        """Say it to a person, or to whatever reads the log line by line."""
        if settings.LOG_FORMAT == "json":
            note(JOBS, logging.INFO, event, **facts)
        else:
            self.stderr.write(words)


@contextlib.contextmanager
def counting_together() -> Iterator[None]:
    """Let all processes of this service count together, if anyone may ask; before it counts."""
    if settings.METRICS_TOKEN is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="consentful-metrics-") as directory:
        os.environ[SHARED] = directory
        yield


def _leave(*arguments: Any) -> None:
    sys.exit(0)

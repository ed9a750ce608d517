"""Tells one preference's life against the running service, and ends by itself."""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from config.demo import run_demo
from config.embedded import EmbeddedServerError
from config.environment import read_text


class Command(BaseCommand):
    help = (
        "Run the whole life of one preference against the real HTTP service, step by step, over"
        " an embedded database of its own below DATA_DIR, which is removed afterwards."
    )
    # They may ask for a database, and this process uses none but the demo's own.
    requires_system_checks: Any = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--keep", action="store_true", help="leave the demo's data directory where it is"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        # The stream itself: Django's wrapper hides whether it is a terminal from Rich.
        console = Console(file=cast(IO[str], self.stdout._out), highlight=False)
        if read_text("DATABASE_URL"):
            self.stderr.write("DATABASE_URL is not used: the demo has an embedded database.")
        try:
            settings.DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A fresh one each time, so that two demos at once do not meet.
            directory = Path(tempfile.mkdtemp(prefix="demo-", dir=settings.DATA_DIR))
        except OSError as error:
            raise CommandError(
                f"The demo needs a place for its data: {error}. Set DATA_DIR."
            ) from error
        try:
            is_told = run_demo(directory=directory, base=settings.BASE_DIR, console=console)
        except EmbeddedServerError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None
        finally:
            if options["keep"]:
                self.stderr.write(f"The demo's data is left in {directory}.")
            else:
                shutil.rmtree(directory, ignore_errors=True)
        if not is_told:
            raise CommandError("The demo failed: a step did not come out as it should.")


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)

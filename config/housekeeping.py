"""
The processes beside a service, for housekeeping and for jobs: started, started again, and ended with it.

Here belong the processes alone; what they do is the `housekeep` command and `config.worker`.
"""

import logging
import os
import subprocess
import sys
import threading

from django.conf import settings

from tenants.observation import JOBS, note

#: What runs beside a service, by what the log calls it.
COMMANDS = {
    "housekeep": [sys.executable, "-m", "config.lifeline", "housekeep", "--loop"],
    "jobs": [sys.executable, "-m", "config.worker"],
}

#: Seconds before a process that died is started again.
PAUSE = 5.0

#: Seconds that it may take to end the piece of work at hand.
PATIENCE = 10.0


class Housekeeper:
    """Keeps one process running between `start` and `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_end(self) -> None:
        """Have the process ended, and wait for nothing."""
        self._ending.set()

    def stop(self) -> None:
        """End the process and wait for it."""
        self.ask_to_end()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            process = subprocess.Popen(
                COMMANDS[self._name],
                cwd=settings.BASE_DIR,
                env=os.environ,
                stdin=subprocess.DEVNULL,
                process_group=0,  # the terminal's Ctrl-C reaches it through `stop`
            )
            while process.poll() is None and not self._ending.wait(0.2):
                pass
            if process.poll() is None:
                _end(process)
            else:
                status = process.returncode
                note(JOBS, logging.ERROR, "job_refused", job=self._name, status=status)
                self._ending.wait(PAUSE)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

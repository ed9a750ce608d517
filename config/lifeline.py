"""
Processes that end with the one that started them, also when that one was killed.

As a program, runs a command of `manage.py` that way: ``python -m config.lifeline COMMAND …``.
"""

import os
import signal
import sys
import threading
import time

from django.core.management import execute_from_command_line

#: The process that the processes of a service belong to; set by the `serve` command.
VARIABLE = "CONSENTFUL_SERVING_PROCESS"

SECONDS = 1.0


def end_with_parent() -> None:
    """Watch the process that serves, from a thread, and end when it is gone."""
    parent = os.environ.get(VARIABLE)
    if parent is not None and int(parent) != os.getpid():
        # The terminal's Ctrl-C reaches every process, and the one that serves tells the others.
        # A worker told twice at once may wait for itself (granian's handler is not reentrant).
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        threading.Thread(target=_watch, args=[int(parent)], daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_parent()
    execute_from_command_line(["manage.py", *sys.argv[1:]])

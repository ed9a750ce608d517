"""
Several commands of `manage.py` in one process, each as a shell would run it alone.

As a program, takes the words of one command a line, as JSON, and answers each with a line: exit
code, output and errors. What all commands import is imported once, which takes longer than most.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.core.management import execute_from_command_line


class Shell:
    """The process in which the commands run."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self._process = process
        self._seconds = seconds

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one command, whatever its exit code will be; that of the process, where it ended."""
        timer = threading.Timer(self._seconds, self._process.kill)
        timer.start()
        try:
            line = self._ask(json.dumps(command))
        finally:
            timer.cancel()
        code, out, err = json.loads(line) if line else (self._process.wait(), "", "")
        return subprocess.CompletedProcess(command, code, out, err)

    def _ask(self, line: str) -> str:
        """Send a line and return the answer, which is empty where the process has ended."""
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("The process was started without pipes.")
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        return self._process.stdout.readline()


@contextlib.contextmanager
def open_shell(base: Path, environment: Mapping[str, str], seconds: float) -> Iterator[Shell]:
    """
    Yield a process for commands, which ends with the block, or with this process.

    Args:
        base: where `manage.py` lies.
        seconds: what one command may take.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "config.commands"],
        cwd=base,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        bufsize=0,  # nothing is kept for a process that has ended
        process_group=0,  # the terminal's Ctrl-C is for whoever waits for the answers
    ) as process:
        try:
            yield Shell(process, seconds)
        except BaseException:
            process.kill()
            raise


def execute(command: list[str]) -> int:
    """Run one command in this process and return its exit code."""
    try:
        execute_from_command_line(["manage.py", *command])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    answers = sys.stdout
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = execute(json.loads(line))
        answers.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        answers.flush()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    main()

"""What every command shares: refusals as one line and exit 1, results alone on standard output."""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError
from psycopg.errors import UndefinedColumn, UndefinedFunction, UndefinedTable

from tenants.exceptions import NotFound, ServiceError
from tenants.observation import JOBS, describe, note

#: What a database says that lacks a migration, or all of them.
ABSENT = (UndefinedTable, UndefinedColumn, UndefinedFunction)


class Step(Protocol):
    """What becomes of one part of an import: ``stored``, ``same`` or ``left_out``."""

    @property
    def outcome(self) -> str: ...

    def line(self) -> str:
        """Return the step as a person reads it."""


class ServiceCommand(BaseCommand):
    """Base of the commands: `run` does the work, refusals become one clear line."""

    requires_system_checks: Any = []
    #: Whether it runs unattended: a refusal is then logged too.
    is_job: ClassVar[bool] = False

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.run(**options)
        except ServiceError as refusal:
            self._note(refusal)
            if len(refusal.errors) > 1:
                for error in refusal.errors:
                    self.tell(f"{error.pointer}: {error.code}: {error.detail}")
                raise CommandError(refusal.detail) from refusal
            where = ", ".join(error.pointer for error in refusal.errors if error.pointer)
            raise CommandError(f"{refusal.detail}{f' ({where})' if where else ''}") from refusal
        except OperationalError as fault:
            self._note(fault)
            raise CommandError(f"The database cannot be reached: {fault}".strip()) from fault
        except DatabaseError as fault:
            self._note(fault)
            if isinstance(fault.__cause__, ABSENT):
                raise CommandError(
                    "The database is not migrated: run `manage.py migrate`."
                ) from fault
            # Its words may quote a row; `--traceback` shows them to whoever asks.
            facts = describe(fault)
            raise CommandError(
                f"The database refused it: {facts['error']}, SQLSTATE {facts['sqlstate']}."
            ) from fault

    def run(self, **options: Any) -> None:
        """Do the work; overridden."""
        raise NotImplementedError

    def _note(self, problem: Exception) -> None:
        if self.is_job:
            name = type(self).__module__.rpartition(".")[2]
            code = getattr(problem, "code", None)
            note(JOBS, logging.ERROR, "job_refused", job=name, code=code, **describe(problem))

    def tell(self, line: str) -> None:
        """Say on standard error what was done."""
        self.stderr.write(line)

    def show_steps(self, steps: Iterable[Step], *, is_dry_run: bool) -> None:
        """Print what became of each part of an import, and say how many of each there are."""
        counts: Counter[str] = Counter()
        for step in steps:
            self.stdout.write(step.line())
            counts[step.outcome] += 1
        would = "would be " if is_dry_run else ""
        self.tell(
            f"{counts['stored']} {would}stored, {counts['same']} stand already,"
            f" {counts['left_out']} {would}left out."
        )


def get_user(username: str) -> Any:
    """
    Return a user of the host.

    Raises:
        NotFound: there is none of that name.
    """
    model = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(username)
    except model.DoesNotExist:
        raise NotFound(f"There is no user {username}.") from None

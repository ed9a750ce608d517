"""What every command shares: refusals as one line and exit 1, results alone on standard output."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError
from psycopg.errors import UndefinedColumn, UndefinedFunction, UndefinedTable

from tenants.exceptions import NotFound, ServiceError

#: What a database says that lacks a migration, or all of them.
ABSENT = (UndefinedTable, UndefinedColumn, UndefinedFunction)


class ServiceCommand(BaseCommand):
    """Base of the commands: `run` does the work, refusals become one clear line."""

    requires_system_checks: Any = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.run(**options)
        except ServiceError as refusal:
            where = ", ".join(error.pointer for error in refusal.errors if error.pointer)
            raise CommandError(f"{refusal.detail}{f' ({where})' if where else ''}") from refusal
        except OperationalError as fault:
            raise CommandError(f"The database cannot be reached: {fault}".strip()) from fault
        except ProgrammingError as fault:
            if not isinstance(fault.__cause__, ABSENT):
                raise
            raise CommandError("The database is not migrated: run `manage.py migrate`.") from fault

    def run(self, **options: Any) -> None:
        """Do the work; overridden."""
        raise NotImplementedError

    def tell(self, line: str) -> None:
        """Say on standard error what was done."""
        self.stderr.write(line)


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

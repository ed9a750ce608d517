#!/usr/bin/env python
"""Runs the commands of the standalone service."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from agents.stdio import take_output
from config.postgresql.base import DatabaseUnavailable


def main() -> int:
    if sys.argv[1:2] == ["mcp_stdio"] and not {"-h", "--help"} & set(sys.argv):
        # Before Django sets up: an app that prints would break the protocol.
        take_output()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)  # noqa: T201  an operator's mistake, told in one line
        return 1
    except OperationalError as error:
        if not isinstance(error.__cause__, DatabaseUnavailable):
            raise
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How the standalone service writes its log: lines for people, or one JSON object each."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from tenants.observation import FACTS

FORMATS = ("text", "json")


class JSONFormatter(logging.Formatter):
    """One object per line: time, level, logger, and the facts; a message where there are none."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        told: dict[str, Any] = {
            "time": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
        }
        facts = {name: getattr(record, name) for name in FACTS if hasattr(record, name)}
        return json.dumps(told | (facts or {"message": record.getMessage()}), ensure_ascii=False)


def make_logging(form: str) -> dict[str, Any]:
    """
    Return Django's `LOGGING`: everything on standard error, and no value in any of it.

    Django's own loggers print paths, headers and stack traces, and a path names a person. What
    happened to a request is told by our own line; of other warnings only the place is.
    """
    own = {"handlers": ["console"], "propagate": False}
    silent = {"handlers": ["nowhere"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"without_values": {"()": "tenants.reports.WithoutValues"}},
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": "config.logs.JSONFormatter"},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": form,
                "filters": ["without_values"],
            },
            "nowhere": {"class": "logging.NullHandler"},
        },
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            "consentful": {**own, "level": "INFO"},
            "django": {**own, "level": "WARNING"},
            # Each of these repeats, with its path, what our own line says of a request.
            "django.request": silent,
            "django.security": silent,
            "django.db.backends": silent,
            "django.template": silent,
            # The development server, which `runserver` starts, has a line of its own per request.
            "django.server": silent,
        },
    }

"""Settings of somebody who prints everywhere: on import, in a signal, as a warning, as a log line."""

import logging
import os
import sys
import warnings

from django.db.models.signals import class_prepared

from tests.settings import *  # noqa: F403

DEBUG = True
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}},
    "root": {"handlers": ["out"], "level": "DEBUG"},
}


def shout(sender, **kwargs):
    print("a model is ready:", sender)  # noqa: T201  that is what it is for


class_prepared.connect(shout)
print("a banner, on import")  # noqa: T201
os.write(1, b"past Python's own stream\n")
warnings.warn("a warning of Django's", stacklevel=1)
logging.captureWarnings(True)
sys.stdout.write("no line end")

"""The service as talkative as its operator can make it, with two routes that break."""

import os

import django

from config.logs import make_logging
from config.settings import *  # noqa: F403

ROOT_URLCONF = "tests.config.observed_urls"
ADMINS = ["admin@consentful.example"] if django.VERSION >= (6,) else [("A", "a@consentful.example")]

LOGGING = make_logging("json")
LOGGING["root"]["level"] = "DEBUG"
LOGGING["handlers"]["mail"] = {
    "class": "tests.config.mails.MailToFile",
    "level": "ERROR",
    "include_html": True,
}
for logger in LOGGING["loggers"].values():
    logger["level"] = "DEBUG"
# What the service keeps silent is heard here, through the filter alone.
for name in ("django.request", "django.security", "django.db.backends", "django.template"):
    LOGGING["loggers"][name] = {
        "handlers": ["console", "mail"],
        "level": "DEBUG",
        "propagate": False,
    }

MAIL_FILE = os.environ.get("MAIL_FILE", os.devnull)

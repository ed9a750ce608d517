"""The service's settings, for its benchmarks: a database per run, and the peers beside the apps."""

import os

from config.logs import make_logging
from config.settings import *  # noqa: F403
from config.settings import DATABASES, INSTALLED_APPS

SECRET_KEY = "for-benchmarks-alone"  # noqa: S105  signs nothing that anyone is sent
DEBUG = False
IS_DEVELOPMENT = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
SIGNING_KEY = None
CONSENTFUL_CHECKPOINTS = None
METRICS_TOKEN = None
CONSENTFUL_METRICS_DIRECTORY = None
LOG_FORMAT = "text"
LOGGING = make_logging(LOG_FORMAT)

ROOT_URLCONF = "benchmarks.urls"
INSTALLED_APPS = [
    *INSTALLED_APPS,
    "rest_framework.authtoken",
    "simple_history",
    "auditlog",
    "benchmarks.peers",
]

#: Runs that share a server have databases of their own, named after their process.
DATABASES["default"]["TEST"] = {"NAME": f"bench_consentful_{os.getpid()}"}

# The server that a run starts works on the database of the run.
if os.environ.get("BENCH_DATABASE"):
    DATABASES["default"]["NAME"] = os.environ["BENCH_DATABASE"]

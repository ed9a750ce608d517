"""
The service's settings, for its tests: a database per run, and cheap passwords.

`DATABASE_URL` and `DATABASE_OWNER_URL` are honoured, so that the suite runs on any server; the
owner then needs CREATEDB. Everything else is pinned, whatever the environment holds.
"""

import os
from pathlib import Path

from config.environment import read_database
from config.logs import make_logging
from config.settings import *  # noqa: F403
from config.settings import MIDDLEWARE
from tests.cluster import DIRECTORY

SECRET_KEY = "for-tests-alone"
SIGNING_KEY = None
# Databases of runs come and go; what was signed about one says nothing about the next.
CONSENTFUL_CHECKPOINTS = None
CONSENTFUL_SUPPRESSIONS = Path(one) if (one := os.environ.get("TEST_SUPPRESSIONS")) else None
CONSENTFUL_SUPPRESSION_KEY = "for-tests-alone"
DEBUG = False
IS_DEVELOPMENT = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
CSRF_TRUSTED_ORIGINS = []

LOG_FORMAT = "text"
LOGGING = make_logging(LOG_FORMAT)
# Tests ask the holders themselves, but for those of the queue.
CONSENTFUL_ERASURE_JOBS = None
METRICS_TOKEN = None
CONSENTFUL_METRICS_DIRECTORY = None

MIDDLEWARE[MIDDLEWARE.index("whitenoise.middleware.WhiteNoiseMiddleware")] = (
    "tests.static.FoundOnce"
)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

DATA_DIR = DIRECTORY
DATABASES = {"default": read_database(DATA_DIR)}
#: Runs that share a server have databases of their own, named after their process.
TEST_DATABASE_PREFIX = "test_consentful_"
DATABASES["default"]["TEST"] = {"NAME": f"{TEST_DATABASE_PREFIX}{os.getpid()}"}

# Commands and services that a test starts work on the database of the run.
if os.environ.get("TEST_DATABASE"):
    DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE"]

"""
Django's settings of the standalone service, from the environment only.

A product that embeds the apps has settings of its own; nothing here is needed by them.
Left unset, values for development apply, and the `serve` command then listens on loopback
alone.
"""

from functools import partial
from pathlib import Path
from typing import Any

from config.environment import (
    find_runtime_role,
    is_loopback,
    read_choice,
    read_command,
    read_database,
    read_flag,
    read_list,
    read_number,
    read_secret,
    read_text,
)
from config.logs import FORMATS, make_logging
from config.signing import find_former_keys, find_signing_key, find_suppression_key
from tenants.openapi_security import SECURITY

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(read_text("DATA_DIR") or BASE_DIR / ".data").absolute()

DEBUG = read_flag("DEBUG")
HOST = read_text("HOST", "127.0.0.1")
PORT = read_number("PORT", 8000, least=1, most=65535)
WEB_CONCURRENCY = read_number("WEB_CONCURRENCY", 1, least=1, most=64)

#: Whether values apply that anyone can know, which is fine for this machine alone.
IS_DEVELOPMENT = not (read_text("SECRET_KEY") and read_text("ALLOWED_HOSTS"))

SECRET_KEY = read_text("SECRET_KEY", "django-insecure-for-development-on-loopback-alone")
#: Keys from before, which still open what they signed while sessions move over.
SECRET_KEY_FALLBACKS = read_list("SECRET_KEY_FALLBACKS")
# What signs checkpoints of the trail; kept in a file where the environment names none.
KEYS_DIR = DATA_DIR / "keys"
SIGNING_KEY = read_text("SIGNING_KEY") or None
CONSENTFUL_SIGNING_KEY = SIGNING_KEY or partial(find_signing_key, KEYS_DIR)
CONSENTFUL_SIGNING_KEY_FALLBACKS = read_text("SIGNING_KEY_FALLBACKS") or partial(
    find_former_keys, KEYS_DIR
)
CONSENTFUL_CHECKPOINTS: Path | list[str] | None = (
    read_command("CHECKPOINT_COMMAND")
    or Path(read_text("CHECKPOINTS") or DATA_DIR / "checkpoints").absolute()
)
# What must not return with a backup, as keyed digests; the key must outlive every backup.
CONSENTFUL_SUPPRESSIONS: Path | list[str] | None = (
    read_command("SUPPRESSION_COMMAND")
    or Path(read_text("SUPPRESSIONS") or DATA_DIR / "suppressions").absolute()
)
CONSENTFUL_SUPPRESSION_KEY = read_text("SUPPRESSION_KEY") or partial(find_suppression_key, KEYS_DIR)
CONSENTFUL_BACKUP_DAYS = read_number("BACKUP_DAYS", 0, least=0, most=36500) or None

ALLOWED_HOSTS = read_list("ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]
if IS_DEVELOPMENT and is_loopback(HOST) and HOST not in ALLOWED_HOSTS:
    ALLOWED_HOSTS.append(HOST)

# Plain HTTP on loopback would lose secure cookies.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not IS_DEVELOPMENT
# TLS ends at the proxy in front. Its X-Forwarded-Proto is not believed, since nothing tells
# whether there is a proxy; naming the origins does what is needed.
CSRF_TRUSTED_ORIGINS = [
    f"https://{'*' + host if host.startswith('.') else host}"
    for host in ALLOWED_HOSTS
    if host != "*" and not IS_DEVELOPMENT
]
SILENCED_SYSTEM_CHECKS = [
    # HSTS is a promise for the whole host name, which the proxy in front makes or does not.
    "security.W004",
    # A redirect to HTTPS belongs in the proxy too: when one reaches this process, a client has
    # already sent its token in the clear, and should fail instead of going on unnoticed.
    "security.W008",
]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "guardian",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "procrastinate.contrib.django",
    "audit",
    "tenants",
    "consent",
    "preferences",
    "agents",
    "privacy",
    "config",
]

MIDDLEWARE = [
    # Order matters: every answer has its request id, those of the middleware below included.
    "tenants.middleware.RequestIDMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
# A redirect would turn a PUT into a GET; routes say themselves which form they take.
APPEND_SLASH = False

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": read_database(DATA_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CONSENTFUL_RUNTIME_ROLE = find_runtime_role(DATABASES["default"])

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
# Permissions are granted on tenants and purposes alone, through tables of their own: nothing
# is added to the user model, and nobody stands for the anonymous.
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
ANONYMOUS_USER_NAME = None

REST_FRAMEWORK: dict[str, Any] = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Consentful",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    # Public, and without a look at any credential: it works while the store is away.
    "SERVE_AUTHENTICATION": [],
    # Views describe themselves whole (tenants.openapi): there is nothing to repair afterwards.
    "POSTPROCESSING_HOOKS": [],
    "APPEND_COMPONENTS": SECURITY,
    # The browsable rendering loads nothing from another host.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LANGUAGE_CODE = "en-us"
USE_I18N = True  # a person's page speaks several languages
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
# Straight from the packages: no collecting step between an update and the admin's style.
WHITENOISE_USE_FINDERS = True

LOG_FORMAT = read_choice("LOG_FORMAT", FORMATS)
LOGGING = make_logging(LOG_FORMAT)
DEFAULT_EXCEPTION_REPORTER = "tenants.reports.ExceptionReporterWithoutValues"

# Jobs lie in the same database, and are given with what they follow, or not at all.
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = None
PROCRASTINATE_IMPORT_PATHS = ["config.jobs"]
CONSENTFUL_ERASURE_JOBS: str | None = "config.jobs.give_to_queue"

#: The bearer token of whoever reads `/metrics`; without one nobody does.
METRICS_TOKEN = read_secret("METRICS_TOKEN")
#: Where commands leave what they measured, for `/metrics`.
CONSENTFUL_METRICS_DIRECTORY: Path | None = DATA_DIR / "metrics"

#: Under which address clients reach the service, where a proxy stands in front.
CONSENTFUL_PUBLIC_URL = read_text("PUBLIC_URL") or None
#: Web pages that may call the MCP endpoint from a browser.
CONSENTFUL_MCP_ORIGINS = read_list("MCP_ORIGINS")

"""A product with habits of its own: users, organisations, DRF defaults, time zone, language."""

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = "the studio's, for tests alone"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]

INSTALLED_APPS = [
    "accounts",
    "briefs",
    "metrics",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    # In the order of the alphabet: the apps do not mind.
    "agents",
    "audit",
    "consent",
    "drf_spectacular",
    "guardian",
    "preferences",
    "privacy",
    "tenants",
]

MIDDLEWARE = [
    "tenants.middleware.RequestIDMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

ROOT_URLCONF = "studio.urls"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# The login of `migrate` owns the tables, the one that serves owns nothing: PGUSER says which.
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "ATOMIC_REQUESTS": True,
        "TEST": {"NAME": f"{os.environ['PGDATABASE']}_suite"},
    },
    "metrics": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "metrics.sqlite3",
        "ATOMIC_REQUESTS": True,
    },
}
DATABASE_ROUTERS = ["studio.routers.MetricsApart"]

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
ANONYMOUS_USER_NAME = None

CONSENTFUL_RUNTIME_ROLE = os.environ.get("STUDIO_RUNTIME_LOGIN")
CONSENTFUL_TENANT_RESOLVER = "accounts.mapping.tenant_of_organisation"
CONSENTFUL_SUBJECT_RESOLVER = "accounts.mapping.person_of_user"
CONSENTFUL_AUTHENTICATION_CLASSES = [
    "tenants.authentication.BearerAuthentication",
    "studio.rest.BadgeAuthentication",
]
CONSENTFUL_SCOPE_KINDS = ["client"]

# Each of these would change an answer of Consentful that did not pin its own.
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["studio.rest.ShoutingRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["studio.rest.NobodyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "studio.rest.PickyNegotiation",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
    "ALLOWED_VERSIONS": ["studio-7"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 1,
    "DEFAULT_FILTER_BACKENDS": ["rest_framework.filters.SearchFilter"],
    "EXCEPTION_HANDLER": "studio.rest.confess",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": "builtins.object",
    "DATETIME_FORMAT": "%d.%m.%Y",
    "COERCE_DECIMAL_TO_STRING": False,
    "UNICODE_JSON": False,
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": os.environ.get("STUDIO_RATE", "1000/min")},
}

LANGUAGE_CODE = "de"
TIME_ZONE = "Asia/Kolkata"
USE_I18N = True
USE_TZ = True
USE_THOUSAND_SEPARATOR = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

"""A host that has the apps and nothing else, to see what they need; it opens no database."""

SECRET_KEY = "for-tests-alone"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "rest_framework",
    "guardian",
    "audit",
    "tenants",
    "consent",
    "preferences",
    "agents",
]

"""The preferences app: typed values at exact addresses."""

from typing import ClassVar

from django.apps import AppConfig


class PreferencesConfig(AppConfig):
    name = "preferences"
    label = "consentful_preferences"
    verbose_name = "Preferences"
    default_auto_field = "django.db.models.BigAutoField"

    runtime_rights: ClassVar[dict[str, str]] = {}

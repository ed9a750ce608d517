"""The privacy app: a person's rights over what every other app holds."""

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "privacy"
    label = "consentful_privacy"
    verbose_name = "Privacy"

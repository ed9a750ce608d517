"""The preferences app: typed values at exact addresses."""

from typing import ClassVar

from audit.installation import InstalledApp


class PreferencesConfig(InstalledApp):
    default = True
    name = "preferences"
    label = "consentful_preferences"
    verbose_name = "Preferences"
    needs = ("consent",)

    runtime_rights: ClassVar[dict[str, str]] = {}

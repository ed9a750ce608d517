"""The privacy app: a person's rights over what every other app holds."""

from audit.installation import InstalledApp


class PrivacyConfig(InstalledApp):
    default = True
    name = "privacy"
    label = "consentful_privacy"
    verbose_name = "Privacy"
    needs = ("preferences",)

    def ready(self) -> None:
        from privacy import checks  # noqa: F401  registers the system checks
        from privacy.restores import watch
        from tenants.restores import questions

        if watch.is_behind not in questions:
            questions.append(watch.is_behind)

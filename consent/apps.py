"""The consent app: may this purpose be served for this subject?"""

from pathlib import Path
from typing import ClassVar

from audit.installation import InstalledApp


class ConsentConfig(InstalledApp):
    default = True
    name = "consent"
    label = "consentful_consent"
    verbose_name = "Consent"
    needs = ("tenants",)

    runtime_rights: ClassVar[dict[str, str]] = {
        "consentful_consent_entry": "SELECT, INSERT",
        "consentful_consent_state": "SELECT",
        # Written by a trigger of the ledger; whoever purges says that it is done.
        "consentful_withdrawal": "SELECT, UPDATE, DELETE",
        # A published notice is what people agreed to: it never changes.
        "consentful_notice": "SELECT, INSERT",
    }

    #: Functions that name the host's user table, and their files.
    user_functions: ClassVar[dict[str, Path]] = {
        "consentful_serves": Path(__file__).with_name("sql") / "serves.sql"
    }

    def ready(self) -> None:
        from audit.verification import extra_checks
        from consent.privacy_control import note_privacy_control
        from consent.verification import check_consent
        from tenants.privacy_control import listeners

        if check_consent not in extra_checks:
            extra_checks.append(check_consent)
        if note_privacy_control not in listeners:
            listeners.append(note_privacy_control)

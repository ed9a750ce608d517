"""The audit app: what happened, and by whom."""

from types import ModuleType
from typing import ClassVar

from audit.installation import InstalledApp, check_shadows


class AuditConfig(InstalledApp):
    default = True
    name = "audit"
    label = "consentful_audit"
    verbose_name = "Audit trail"

    #: What the runtime login may do with a table, where that is less than all of
    #: SELECT, INSERT, UPDATE and DELETE. Granted after every migration.
    runtime_rights: ClassVar[dict[str, str]] = {
        "consentful_audit_event": "SELECT",
        "consentful_audit_seal": "SELECT",
        "consentful_audit_head": "SELECT",
        "consentful_audit_cut": "SELECT",
    }

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        # As early as can be: the next app already imports from this one.
        check_shadows()
        super().__init__(app_name, app_module)

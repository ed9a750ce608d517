"""The audit app: what happened, and by whom."""

from typing import ClassVar

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"
    label = "consentful_audit"
    verbose_name = "Audit trail"
    default_auto_field = "django.db.models.BigAutoField"

    #: What the runtime login may do with a table, where that is less than all of
    #: SELECT, INSERT, UPDATE and DELETE. Granted after every migration.
    runtime_rights: ClassVar[dict[str, str]] = {
        "consentful_audit_event": "SELECT",
        "consentful_audit_seal": "SELECT",
        "consentful_audit_head": "SELECT",
        "consentful_audit_cut": "SELECT",
    }

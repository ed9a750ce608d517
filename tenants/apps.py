"""The tenants app: who is kept apart from whom, and who may ask."""

from pathlib import Path
from typing import Any, ClassVar

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TenantsConfig(AppConfig):
    name = "tenants"
    label = "consentful_tenants"
    verbose_name = "Tenants"
    default_auto_field = "django.db.models.BigAutoField"

    runtime_rights: ClassVar[dict[str, str]] = {}

    #: Functions that name the host's user table, and their files.
    user_functions: ClassVar[dict[str, Path]] = {
        "consentful_caller": Path(__file__).with_name("sql") / "caller.sql"
    }

    def ready(self) -> None:
        from tenants import checks  # noqa: F401  registers the system checks
        from tenants.rights import grant_runtime_rights
        from tenants.users import follow_user_table

        def follow(sender: AppConfig, **kwargs: Any) -> None:
            follow_user_table(using=kwargs["using"])

        def grant(sender: AppConfig, **kwargs: Any) -> None:
            # Tables of every app exist only when the last one has migrated.
            grant_runtime_rights(using=kwargs["using"])

        # Once per run, not once per app: its signal comes when every app has migrated.
        post_migrate.connect(follow, sender=self, dispatch_uid="consentful.users", weak=False)
        post_migrate.connect(grant, dispatch_uid="consentful.rights", weak=False)

"""The tenants app: who is kept apart from whom, and who may ask."""

from typing import Any, ClassVar

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class TenantsConfig(AppConfig):
    name = "tenants"
    label = "consentful_tenants"
    verbose_name = "Tenants"
    default_auto_field = "django.db.models.BigAutoField"

    runtime_rights: ClassVar[dict[str, str]] = {}

    def ready(self) -> None:
        from tenants import checks  # noqa: F401  registers the system checks
        from tenants.patience import bound_waits, unbound_waits
        from tenants.rights import grant_runtime_rights, grant_sight_of_migrations

        def begin(sender: AppConfig, **kwargs: Any) -> None:
            bound_waits(using=kwargs["using"])
            grant_sight_of_migrations(using=kwargs["using"])

        def end(sender: AppConfig, **kwargs: Any) -> None:
            unbound_waits(using=kwargs["using"])

        def grant(sender: AppConfig, **kwargs: Any) -> None:
            # Tables of every app exist only when the last one has migrated.
            grant_runtime_rights(using=kwargs["using"])

        # For this app alone: by then the connection is the one that migrates.
        pre_migrate.connect(begin, sender=self, dispatch_uid="consentful.patience", weak=False)
        post_migrate.connect(end, sender=self, dispatch_uid="consentful.patience", weak=False)
        post_migrate.connect(grant, dispatch_uid="consentful.rights", weak=False)

"""The tenants app: who is kept apart from whom, and who may ask."""

from pathlib import Path
from typing import Any, ClassVar

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate, pre_migrate

try:
    from audit.installation import InstalledApp
except ImportError as fault:
    # The most likely name to be taken: a product has an audit of its own.
    raise ImproperlyConfigured(
        "consentful.E004: the package audit is not Consentful's. Look where"
        " `python -c 'import audit; print(audit.__path__)'` points; rename that one, or put"
        " Consentful before it on the path."
    ) from fault


class TenantsConfig(InstalledApp):
    default = True
    name = "tenants"
    label = "consentful_tenants"
    verbose_name = "Tenants"
    needs = ("django.contrib.auth", "django.contrib.contenttypes", "guardian", "audit")

    runtime_rights: ClassVar[dict[str, str]] = {}

    #: Functions that name the host's user table, and their files.
    user_functions: ClassVar[dict[str, Path]] = {
        "consentful_caller": Path(__file__).with_name("sql") / "caller.sql"
    }

    def ready(self) -> None:
        from audit.capture import follow_columns
        from tenants import checks  # noqa: F401  registers the system checks
        from tenants.patience import bound_waits, unbound_waits
        from tenants.rights import check_login, grant_runtime_rights, grant_sight_of_migrations
        from tenants.users import follow_user_table

        def begin(sender: AppConfig, **kwargs: Any) -> None:
            check_login(using=kwargs["using"])
            bound_waits(using=kwargs["using"])
            grant_sight_of_migrations(using=kwargs["using"])

        def end(sender: AppConfig, **kwargs: Any) -> None:
            unbound_waits(using=kwargs["using"])
            follow_user_table(using=kwargs["using"])
            follow_columns(using=kwargs["using"])

        def grant(sender: AppConfig, **kwargs: Any) -> None:
            # Tables of every app exist only when the last one has migrated.
            grant_runtime_rights(using=kwargs["using"])

        # For this app alone: by then the connection is the one that migrates, and its signal
        # comes when every app has migrated.
        pre_migrate.connect(begin, sender=self, dispatch_uid="consentful.begin", weak=False)
        post_migrate.connect(end, sender=self, dispatch_uid="consentful.end", weak=False)
        post_migrate.connect(grant, dispatch_uid="consentful.rights", weak=False)

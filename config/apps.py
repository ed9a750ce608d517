"""The standalone service as a Django app: its commands, and who migrates."""

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

MIGRATING = "migrate"


class ServiceConfig(AppConfig):
    name = "config"
    label = "consentful_config"
    verbose_name = "Consentful service"

    def ready(self) -> None:
        from config.postgresql.base import DatabaseWrapper

        def begin(using: str, **kwargs: Any) -> None:
            connection = connections[using]
            if isinstance(connection, DatabaseWrapper):
                connection.become_owner(MIGRATING)

        def end(sender: AppConfig, using: str, **kwargs: Any) -> None:
            # One signal per app; those of the apps before still write permissions and grants.
            # Apps without models get no signal.
            last = [app for app in apps.get_app_configs() if app.models_module is not None][-1]
            connection = connections[using]
            if sender is last and isinstance(connection, DatabaseWrapper):
                connection.resign_as_owner(MIGRATING)

        pre_migrate.connect(begin, weak=False, dispatch_uid="consentful.become_owner")
        post_migrate.connect(end, weak=False, dispatch_uid="consentful.resign_as_owner")

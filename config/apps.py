"""The standalone service: makes migrations run as the owner of the tables."""

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

from config.postgresql.base import DatabaseWrapper


class ServiceConfig(AppConfig):
    name = "config"
    label = "consentful_config"
    verbose_name = "Consentful service"

    def ready(self) -> None:
        # Order matters: this app is the last installed, so that its receiver of post_migrate runs
        # after those that still need the owner, such as the granting of rights.
        pre_migrate.connect(become_owner, dispatch_uid="consentful.become_owner")
        post_migrate.connect(become_runtime, dispatch_uid="consentful.become_runtime")


def become_owner(sender: AppConfig, using: str, **kwargs: Any) -> None:
    """Migrate as the owner."""
    connection = connections[using]
    if isinstance(connection, DatabaseWrapper):
        connection.be_owner("migrate", True)


def become_runtime(sender: AppConfig, using: str, **kwargs: Any) -> None:
    """Serve as the login that owns nothing again, once the last app has migrated."""
    connection = connections[using]
    with_models = [app for app in apps.get_app_configs() if app.models_module is not None]
    if isinstance(connection, DatabaseWrapper) and sender.name == with_models[-1].name:
        connection.be_owner("migrate", False)

"""Which tables stand in which database."""

from typing import Any


class MetricsApart:
    """Metrics have a database of their own."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "metrics" if model._meta.app_label == "metrics" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return (db == "metrics") == (app_label == "metrics")


class PeopleApart:
    """The studio's own tables stand in `default`; people and what is remembered, in `people`."""

    THEIRS = ("accounts", "admin", "auth", "contenttypes", "guardian")

    def is_about_people(self, app_label: str) -> bool:
        return app_label in self.THEIRS or app_label.startswith("consentful_")

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "people" if self.is_about_people(model._meta.app_label) else "default"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return (db == "people") == self.is_about_people(app_label)

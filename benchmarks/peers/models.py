"""The same record kept by others: with a history, with a log, with a log and a version."""

from typing import Any, ClassVar

from auditlog.registry import auditlog
from concurrency.fields import IntegerVersionField
from django.db import models
from simple_history.models import HistoricalRecords


class Kept(models.Model):
    """One value at one address, in the shape that all of them share."""

    tenant_id = models.BigIntegerField()
    scope = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    value = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # Said aloud, since the checks of types know only the apps of the service.
    objects: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        abstract = True
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["tenant_id", "scope", "key"], name="%(app_label)s_%(class)s_address"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}"


class Historied(Kept):
    """Kept with django-simple-history."""

    history = HistoricalRecords()

    class Meta(Kept.Meta):
        db_table = "peer_historied"


class Logged(Kept):
    """Kept with django-auditlog."""

    class Meta(Kept.Meta):
        db_table = "peer_logged"


class Versioned(Kept):
    """Kept with django-auditlog, and with the version of django-concurrency."""

    version = IntegerVersionField()

    class Meta(Kept.Meta):
        db_table = "peer_versioned"


auditlog.register(Logged)
auditlog.register(Versioned)

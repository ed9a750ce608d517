"""Erasures: what was asked for, and what became of it with each holder of something about a person."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models import Captured
from tenants.models import Subject, Tenant


class Erasure(Captured):
    """
    One request to forget a person, or some of their records.

    Holds the person's name, and the keys that were named, only for as long as a holder outside the
    database still needs them.
    """

    noun: ClassVar[str] = "erasure"

    class Status(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    reference = models.CharField(max_length=32, unique=True, help_text="Its name outside.")
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, null=True, help_text="Empty where nobody was known."
    )
    digest = models.CharField(max_length=64, help_text="Keyed digest of the person's name.")
    name = models.CharField(max_length=200, null=True, db_collation="C")
    login = models.TextField(null=True, help_text="The user id of the person's login, as text.")
    is_whole = models.BooleanField(help_text="Whether everything about the person goes.")
    keys = ArrayField(models.CharField(max_length=200), null=True)
    key_digests = ArrayField(models.CharField(max_length=64), null=True)
    purposes = ArrayField(models.CharField(max_length=64), null=True)
    written_until = models.DateTimeField(
        null=True, help_text="Only what was written by then: a withdrawal asks for no more."
    )
    method = models.CharField(
        max_length=32, help_text="user_confirmed, guardian, operator, withdrawal or restore."
    )
    status = models.CharField(max_length=16, choices=Status)
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "consentful_erasure"
        indexes = [
            models.Index(fields=["tenant", "id"], name="consentful_erasure_pages"),
            models.Index(fields=["tenant", "digest"], name="consentful_erasure_person"),
            models.Index(
                fields=["tenant", "id"],
                name="consentful_erasure_open",
                condition=models.Q(finished_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"erasure {self.reference}"


class ErasureHolder(Captured):
    """What became of one erasure with one holder. Counts come from a look of its own afterwards."""

    noun: ClassVar[str] = "erasure_holder"

    class Status(models.TextChoices):
        PENDING = "pending", "not yet asked"
        DONE = "done", "erased, and nothing is left"
        NOTHING_FOUND = "nothing_found", "held nothing"
        FAILED = "failed", "did not succeed yet, and will be asked again"
        HELD = "held", "erased but for what is under a legal hold"
        NOT_RECALLABLE = "not_recallable", "cannot be reached"
        EXEMPT = "exempt", "kept, since the law says so"

    #: What is decided: such a holder is not asked again.
    SETTLED: ClassVar[frozenset[str]] = frozenset(
        {Status.DONE, Status.NOTHING_FOUND, Status.NOT_RECALLABLE, Status.EXEMPT}
    )

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    erasure = models.ForeignKey(Erasure, on_delete=models.PROTECT, related_name="holders")
    position = models.PositiveSmallIntegerField()
    holder = models.CharField(max_length=64)
    is_external = models.BooleanField(help_text="Outside the transaction: asked by a job.")
    status = models.CharField(max_length=16, choices=Status)
    found = models.PositiveBigIntegerField(
        null=True, help_text="Counted before the first attempt, which may have been cut short."
    )
    erased = models.PositiveBigIntegerField(null=True)
    held = models.PositiveBigIntegerField(null=True, help_text="Left because of a legal hold.")
    kept = models.PositiveBigIntegerField(null=True, help_text="Left because the law says so.")
    ground = models.TextField(null=True, help_text="Why it is kept, or cannot be reached.")
    attempts = models.PositiveIntegerField(default=0)
    reason = models.TextField(null=True, help_text="Why the last attempt failed.")
    due_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "consentful_erasure_holder"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "erasure", "holder"], name="consentful_erasure_holder_once"
            )
        ]

    def __str__(self) -> str:
        return self.holder


class Reapplied(Captured):
    """A withdrawal that a restored database did not know, and has caught up with."""

    noun: ClassVar[str] = "reapplied"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    reference = models.CharField(max_length=64)

    class Meta:
        db_table = "consentful_reapplied"
        verbose_name_plural = "reapplied"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "reference"], name="consentful_reapplied_once"
            )
        ]

    def __str__(self) -> str:
        return f"reapplied {self.pk}"

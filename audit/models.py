"""
The trail's tables, and the base of every table that the trail proves.

Must stay generic: knows ids and names of actions, no model of another app, no value of a person.
"""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Captured(models.Model):
    """
    Base of every stateful table: its changes are captured by trigger, whichever way they are made.

    The database sets both columns with every version. `revision` names the version; `salt` makes
    the digest in its event useless for guessing the value once the row is gone. An instance keeps
    the old ones after `save()`: read the row again to know them.
    """

    #: The record's name in actions, e.g. ``preference`` in ``preference.created``.
    noun: ClassVar[str]

    revision = models.CharField(max_length=32, db_default="", editable=False)
    salt = models.CharField(max_length=32, db_default="", editable=False)

    class Meta:
        abstract = True


class Event(models.Model):
    """
    One change, refusal or disclosure. Written by the database alone and never altered.

    The columns up to `actor_digest` are hashed; the readable ones after it are covered by the two
    salted digests, so that they can be blanked together with their salt when a person is erased.
    """

    class Outcome(models.TextChoices):
        DONE = "done"
        DENIED = "denied"

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.BigIntegerField(help_text="0 stands for the installation.")
    at = models.DateTimeField()
    transaction = models.BigIntegerField(help_text="PostgreSQL's id of the transaction.")
    cluster = models.BigIntegerField(help_text="System identifier: ids restart in a new cluster.")
    action = models.TextField(help_text="Noun and verb, as in preference.created.")
    outcome = models.TextField(choices=Outcome)
    record = models.TextField(null=True)
    record_id = models.BigIntegerField(null=True)
    subject_id = models.BigIntegerField(null=True)
    actor_id = models.TextField(null=True)
    purpose = models.TextField(null=True)
    changed = ArrayField(models.TextField(), help_text="Names of the columns that changed.")
    revision_before = models.TextField(null=True)
    revision_after = models.TextField(null=True)
    row_digest = models.TextField(null=True, help_text="SHA-256 of the row's salt and text.")
    target_digest = models.TextField()
    actor_digest = models.TextField()

    subject = models.TextField(null=True)
    scope = models.TextField(null=True)
    key = models.TextField(null=True)
    on_behalf_of = models.TextField(null=True)
    reason = models.TextField(null=True)
    request_id = models.TextField(null=True)
    target_salt = models.TextField(null=True)
    actor = models.TextField(null=True)
    actor_salt = models.TextField(null=True)

    class Meta:
        db_table = "consentful_audit_event"
        indexes = [
            # A tenant's trail, page by page, and what the sealer takes next.
            models.Index(fields=["tenant_id", "id"], name="consentful_event_tenant"),
            # A record's events in their order: its history, its proof, its last event.
            models.Index(
                fields=["tenant_id", "record", "record_id", "id"],
                name="consentful_event_record",
                condition=models.Q(record__isnull=False),
            ),
            # A person asks what was done about them; erased ones have no name here any more.
            models.Index(
                fields=["tenant_id", "subject", "id"],
                name="consentful_event_subject",
                condition=models.Q(subject__isnull=False),
            ),
            # An erasure looks for what a person's login did, and what was done on its behalf.
            models.Index(fields=["tenant_id", "actor_id"], name="consentful_event_actor"),
            models.Index(
                fields=["tenant_id", "on_behalf_of"],
                name="consentful_event_behalf",
                condition=models.Q(on_behalf_of__isnull=False),
            ),
            # Refusals are few among many events: an operator asks how many of late.
            models.Index(
                fields=["tenant_id", "id"],
                name="consentful_event_denied",
                condition=models.Q(outcome="denied"),
            ),
            # The sealer asks which events belong to transactions that are still running.
            models.Index(fields=["transaction"], name="consentful_event_transaction"),
        ]

    def __str__(self) -> str:
        return f"{self.action} ({self.pk})"


class Seal(models.Model):
    """One link of a tenant's hash chain: this event, in this place, after that link."""

    # The key too: a link has no other name that anything asks for.
    event = models.OneToOneField(
        Event, on_delete=models.DO_NOTHING, db_constraint=False, related_name="seal",
        primary_key=True,
    )  # fmt: skip
    tenant_id = models.BigIntegerField()
    sequence = models.BigIntegerField()
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        db_table = "consentful_audit_seal"
        constraints = [
            # Two links after one would be a fork: each has a place of its own, and the trigger
            # consentful_follow holds it against the link in the place before.
            models.UniqueConstraint(
                fields=["tenant_id", "sequence"], name="consentful_seal_sequence"
            ),
        ]

    def __str__(self) -> str:
        return f"seal {self.sequence} of tenant {self.tenant_id}"


class Head(models.Model):
    """Where a tenant's chain stands: the sealer's lock, and a witness of the chain's length."""

    tenant_id = models.BigIntegerField(primary_key=True)
    sequence = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    cluster = models.BigIntegerField()
    started = models.DateTimeField(null=True, help_text="Start of the server that said so.")
    horizon = models.BigIntegerField(help_text="Events of older transactions are sealed, ...")
    resume = models.BigIntegerField(help_text="... but for those with this id or a larger one.")

    class Meta:
        db_table = "consentful_audit_head"

    def __str__(self) -> str:
        return f"head of tenant {self.tenant_id}"


class Cut(models.Model):
    """
    The end of a prefix that retention took from a tenant's chain: the rest follows this link.

    Only events and links that a cut covers can ever be deleted.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.BigIntegerField()
    sequence = models.BigIntegerField(help_text="Place of the last link that was cut.")
    hash = models.CharField(max_length=64)
    checkpoint = models.TextField(help_text="Signed: that this link stood there when it was cut.")
    at = models.DateTimeField()

    class Meta:
        db_table = "consentful_audit_cut"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "sequence"], name="consentful_cut_place")
        ]

    def __str__(self) -> str:
        return f"cut of tenant {self.tenant_id} after {self.sequence}"

"""Declared settings and the values stored for them. Records are written by `services` alone."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Now

from audit.models import Captured
from consent.models import Purpose
from tenants.models import Subject, Tenant


class JSONTextField(models.TextField):  # type: ignore[type-arg]
    """
    Canonical JSON text in a column of type ``json``.

    Not jsonb, which turns ``1e22`` into an integer and ``-0.0`` into ``0.0``; and not parsed on
    the way out, since most of it only travels.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        return f"{sql}::text", params


class Writer(models.TextChoices):
    """Who may write a declared setting."""

    SUBJECT = "subject"
    OPERATOR = "operator"
    AGENT = "agent"


class Definition(Captured):
    """A declared setting: its purpose, its schema, where it applies and who may write it."""

    noun: ClassVar[str] = "definition"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    key = models.CharField(max_length=200, db_collation="C")
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT)
    schema = JSONTextField(default="true", help_text="JSON Schema 2020-12.")
    default = JSONTextField(
        null=True, blank=True, help_text="What applies where nothing is stored."
    )
    ttl_default = models.PositiveBigIntegerField(null=True, blank=True, help_text="Seconds.")
    ttl_max = models.PositiveBigIntegerField(null=True, blank=True, help_text="Seconds.")
    scopes = ArrayField(models.CharField(max_length=32), help_text="Kinds of scope.")
    writers = ArrayField(models.CharField(max_length=16, choices=Writer))
    transitions = JSONTextField(
        null=True, blank=True, help_text="For each status of a value, those that may follow it."
    )
    description = models.TextField(blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "consentful_definition"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="consentful_definition_key"),
            models.CheckConstraint(
                name="consentful_definition_ttl",
                condition=(models.Q(ttl_default=None) | models.Q(ttl_default__gte=1))
                & (models.Q(ttl_max=None) | models.Q(ttl_max__gte=1))
                & (
                    models.Q(ttl_max=None)
                    | models.Q(ttl_default=None)
                    | models.Q(ttl_default__lte=models.F("ttl_max"))
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.key


class UndeclaredRule(Captured):
    """Whether keys without a definition may be stored in one kind of scope, and for what purpose."""

    noun: ClassVar[str] = "undeclared_rule"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    kind = models.CharField(max_length=32)
    is_allowed = models.BooleanField(default=False)
    purpose = models.ForeignKey(
        Purpose, on_delete=models.PROTECT, null=True, blank=True,
        help_text="Governs them where the kind of scope is a person's.",
    )  # fmt: skip

    class Meta:
        db_table = "consentful_undeclared_rule"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kind"], name="consentful_undeclared_kind"),
            models.CheckConstraint(
                name="consentful_undeclared_personal",
                condition=~models.Q(kind="user", is_allowed=True, purpose=None),
            ),
        ]

    def __str__(self) -> str:
        return self.kind


class Preference(Captured):
    """One value at one exact address: tenant, scope, key."""

    noun: ClassVar[str] = "preference"

    # Every index begins with the tenant: one of its own would answer nothing more. The foreign keys
    # to persons and purposes name the tenant too, and stand in sql/preferences.sql.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    scope = models.CharField(max_length=300, db_collation="C")
    key = models.CharField(max_length=200, db_collation="C")
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, null=True, db_constraint=False,
        help_text="Whose data it is, if anyone's.",
    )  # fmt: skip
    purpose = models.ForeignKey(
        Purpose, on_delete=models.PROTECT, null=True, db_constraint=False, db_index=False
    )
    value = JSONTextField()
    tags = ArrayField(models.CharField(max_length=64), default=list)
    metadata = JSONTextField(default="{}")
    source = models.CharField(max_length=16)
    actor = models.CharField(max_length=200)
    provenance = JSONTextField(help_text="detail, origin and confidence, as the writer gave them.")
    seen_count = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(null=True)
    #: Retired from every read and list, but not from what a person is told, exports or erases.
    archived_at = models.DateTimeField(null=True, editable=False)
    # A legal hold: while it lasts, nobody changes or deletes the record (`holds`).
    held_at = models.DateTimeField(null=True, editable=False)
    held_until = models.DateTimeField(null=True, help_text="Empty: until somebody ends it.")
    hold_reason = models.TextField(null=True)

    class Meta:
        db_table = "consentful_preference"
        # Granted to a person by name, never by a role: what nobody consents to stays unseen.
        permissions = [("view_withheld_values", "Can view values while no consent is in force")]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "scope", "key"], name="consentful_preference_address"
            ),
            # The admin pages by key through a tenant; and what belongs to a record names both.
            models.UniqueConstraint(fields=["tenant", "id"], name="consentful_preference_pages"),
        ]
        indexes = [
            # Lists page by creation within a scope.
            models.Index(fields=["tenant", "scope", "id"], name="consentful_preference_list"),
            # The admin pages by key through what serves one purpose.
            models.Index(fields=["tenant", "purpose", "id"], name="consentful_preference_served"),
            # The purge asks for what is past its deadline.
            models.Index(
                fields=["tenant", "expires_at"],
                name="consentful_preference_expiry",
                condition=models.Q(expires_at__isnull=False),
            ),
            # The admin lists what is held, which is little among much.
            models.Index(
                fields=["tenant", "id"],
                name="consentful_preference_held",
                condition=models.Q(held_at__isnull=False),
            ),
            # So is what is archived.
            models.Index(
                fields=["tenant", "scope", "id"],
                name="consentful_preference_retired",
                condition=models.Q(archived_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"preference {self.pk}"


class RecordWords(models.Model):
    """
    What one record can be found by: its words, and the places where it may be searched.

    Not captured by the trail: the database derives it from the record, with which it goes.
    """

    # The database's own key names the tenant too, and takes the row along.
    preference = models.OneToOneField(
        Preference, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    words = SearchVectorField()

    class Meta:
        db_table = "consentful_preference_words"
        indexes = [GinIndex(fields=["words"], name="consentful_words_found")]

    def __str__(self) -> str:
        return f"words of {self.pk}"


class Reading(models.Model):
    """
    Somebody else read a person's record on one day. One's own reading leaves none.

    Not captured by the trail: it is a trail itself, of what changes nothing. Goes with its record.
    """

    # Every index begins with the tenant: one of its own would answer nothing more.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    # The database's own keys name the tenant too; that of the record takes the rows along.
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, db_index=False, db_constraint=False,
        help_text="Whose record it is.",
    )  # fmt: skip
    preference = models.ForeignKey(
        Preference, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False
    )
    reader = models.CharField(max_length=200, help_text="Who read it.")
    day = models.DateField(help_text="In UTC.")
    at = models.DateTimeField(help_text="When it was first noted on that day.")

    class Meta:
        db_table = "consentful_reading"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "preference", "reader", "day"], name="consentful_reading_once"
            )
        ]
        indexes = [
            # A person pages through who read what about them; the purge asks for old days.
            models.Index(fields=["tenant", "subject", "id"], name="consentful_reading_subject"),
            models.Index(fields=["tenant", "day"], name="consentful_reading_day"),
        ]

    def __str__(self) -> str:
        return f"reading {self.pk}"

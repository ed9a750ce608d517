"""Purposes, the notices people saw, the ledger of their decisions and its current state."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from audit.models import Captured
from tenants.models import SLUG, Subject, Tenant

#: Codename of the guardian permission that lets an agent serve a purpose.
SERVE = "serve_purpose"


class Purpose(Captured):
    """Why data is processed, and on what ground."""

    noun: ClassVar[str] = "purpose"

    class LawfulBasis(models.TextChoices):
        """The six grounds of GDPR article 6(1); the ledger is asked for the first alone."""

        CONSENT = "consent"
        CONTRACT = "contract"
        LEGAL_OBLIGATION = "legal_obligation"
        VITAL_INTEREST = "vital_interest"
        PUBLIC_INTEREST = "public_interest"
        LEGITIMATE_INTEREST = "legitimate_interest"

    class OnWithdrawal(models.TextChoices):
        """What becomes of the records: kept and closed, or purged by housekeeping."""

        KEEP = "keep"
        ERASE = "erase"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    slug = models.CharField(max_length=64, validators=[SLUG])
    title = models.CharField(max_length=200)
    lawful_basis = models.CharField(max_length=32, choices=LawfulBasis)
    required_version = models.PositiveIntegerField(
        default=0, help_text="Consent to an older notice is outdated. 0 while there is no notice."
    )
    on_withdrawal = models.CharField(max_length=16, choices=OnWithdrawal, default=OnWithdrawal.KEEP)
    # True or null, never false: nulls stay out of a row's digest, so rows that stood before these
    # columns came are what their events say.
    is_sharing = models.BooleanField(
        null=True, help_text="Data goes to others: Sec-GPC says no to it."
    )
    is_confirmed = models.BooleanField(
        null=True, help_text="Consent is asked for first and given with a token (double opt-in)."
    )
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "consentful_purpose"
        permissions = [(SERVE, "Can serve this purpose as an agent")]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug"], name="consentful_purpose_slug")
        ]

    def __str__(self) -> str:
        return self.slug


class Notice(Captured):
    """The exact text, in one version and language, that people are shown. Never changed."""

    noun: ClassVar[str] = "notice"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, related_name="notices")
    version = models.PositiveIntegerField()
    locale = models.CharField(max_length=35, help_text="A BCP 47 language tag.")
    text = models.TextField()
    digest = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the text in UTF-8."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "consentful_notice"
        constraints = [
            models.UniqueConstraint(
                fields=["purpose", "version", "locale"], name="consentful_notice_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.version} ({self.locale})"


class PurposeUserPermission(UserObjectPermissionBase, Captured):
    """One agent that may serve one purpose."""

    noun: ClassVar[str] = "purpose_grant"

    content_object = models.ForeignKey(Purpose, on_delete=models.CASCADE, db_column="purpose_id")
    #: Set by trigger from the purpose: guardian does not know tenants.
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, editable=False)

    class Meta(UserObjectPermissionBase.Meta):
        db_table = "consentful_purpose_user_permission"
        verbose_name = "purpose of an agent"
        verbose_name_plural = "purposes of agents"

    def __str__(self) -> str:
        # Not the purpose's name: Django's page of a login shows it where no tenant is announced.
        return f"purpose {self.content_object_id} for {self.user}"


class PurposeGroupPermission(GroupObjectPermissionBase, Captured):
    """One group of agents that may serve one purpose."""

    noun: ClassVar[str] = "purpose_group_grant"

    content_object = models.ForeignKey(Purpose, on_delete=models.CASCADE, db_column="purpose_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, editable=False)

    class Meta(GroupObjectPermissionBase.Meta):
        db_table = "consentful_purpose_group_permission"
        verbose_name = "purpose of a group"
        verbose_name_plural = "purposes of groups"

    def __str__(self) -> str:
        return f"purpose {self.content_object_id} for the group {self.group}"


class Decision(models.TextChoices):
    """What a person decided about a purpose that rests on consent."""

    GIVEN = "given"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


class Objection(models.TextChoices):
    """What a person said about a purpose that rests on somebody's interest (GDPR article 21)."""

    OBJECTED = "objected"
    LIFTED = "objection_lifted"


class ConsentEntry(Captured):
    """One decision, as it was made. The ledger is append-only."""

    noun: ClassVar[str] = "consent"

    # Every index begins with the tenant: one of its own would answer nothing more. The foreign keys
    # to persons and purposes name the tenant too, and stand in sql/consent.sql.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, db_constraint=False, db_index=False
    )
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, db_constraint=False)
    sequence = models.PositiveIntegerField(
        db_default=0,
        editable=False,
        help_text="Set by trigger: 1, 2, 3 … for this person and purpose.",
    )
    entry = models.CharField(
        max_length=32, db_default="", editable=False, help_text="Set by trigger: the name outside."
    )
    decision = models.CharField(max_length=16, choices=[*Decision.choices, *Objection.choices])
    version = models.PositiveIntegerField(null=True, help_text="The notice version that was shown.")
    locale = models.CharField(max_length=35, null=True)
    notice_digest = models.CharField(max_length=64, null=True)
    expires_at = models.DateTimeField(null=True)
    actor = models.CharField(max_length=200)
    method = models.CharField(
        max_length=32,
        help_text="user_confirmed, double_opt_in, guardian, operator, gpc, import or system.",
    )
    evidence = models.TextField(null=True)
    at = models.DateTimeField(db_default=Now(), editable=False, help_text="Set by trigger.")

    class Meta:
        db_table = "consentful_consent_entry"
        verbose_name_plural = "consent entries"
        indexes = [
            # The admin pages by key through a tenant.
            models.Index(fields=["tenant", "id"], name="consentful_entry_pages")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "purpose", "sequence"],
                name="consentful_entry_sequence",
            )
        ]

    def __str__(self) -> str:
        return f"{self.decision} ({self.sequence})"


class ConsentState(models.Model):
    """The newest decision of one person on one purpose, kept by a trigger on the ledger alone."""

    # Every index begins with the tenant: one of its own would answer nothing more. The foreign keys
    # to persons and purposes name the tenant too, and stand in sql/consent.sql.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, db_constraint=False, db_index=False
    )
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, db_constraint=False)
    decision = models.CharField(max_length=16, choices=[*Decision.choices, *Objection.choices])
    version = models.PositiveIntegerField(null=True)
    expires_at = models.DateTimeField(null=True)
    since = models.DateTimeField()
    sequence = models.PositiveIntegerField()
    entry = models.CharField(max_length=32)
    #: The person's own (`Subject.restricted`), where the read of a record finds it.
    restricted = models.CharField(max_length=8, null=True)

    class Meta:
        db_table = "consentful_consent_state"
        indexes = [
            # The admin pages by key through a tenant.
            models.Index(fields=["tenant", "id"], name="consentful_state_pages"),
            # An operator asks which consents end soon.
            models.Index(
                fields=["tenant", "expires_at"],
                name="consentful_state_expiry",
                condition=models.Q(expires_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "purpose"], name="consentful_state_address"
            )
        ]

    def __str__(self) -> str:
        return self.decision


class Restriction(Captured):
    """
    What of a person is kept and not used (GDPR article 18): everything, or the record of one key.

    Lifted ones stay, so that the person can see who lifted them and why.
    """

    noun: ClassVar[str] = "restriction"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    subject = models.ForeignKey(Subject, on_delete=models.PROTECT, db_index=False)
    key = models.CharField(
        max_length=200, null=True, db_collation="C", help_text="Empty for everything."
    )
    actor = models.CharField(max_length=200)
    method = models.CharField(max_length=32, help_text="user_confirmed, guardian or operator.")
    evidence = models.TextField(null=True)
    at = models.DateTimeField(db_default=Now(), editable=False, help_text="Set by trigger.")
    lifted_at = models.DateTimeField(null=True, editable=False, help_text="Set by trigger.")
    lifted_by = models.CharField(max_length=200, null=True)
    lifted_because = models.TextField(null=True, help_text="What the person is told.")

    class Meta:
        db_table = "consentful_restriction"
        indexes = [models.Index(fields=["tenant", "subject"], name="consentful_restriction_person")]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "key"], name="consentful_restriction_in_force",
                condition=models.Q(lifted_by=None), nulls_distinct=False,
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"restriction {self.pk}"


class Withdrawal(Captured):
    """What one withdrawal asks to be purged, where its purpose says so; a trigger writes it."""

    noun: ClassVar[str] = "withdrawal"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    subject = models.ForeignKey(Subject, on_delete=models.PROTECT, db_index=False)
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, db_index=False)
    at = models.DateTimeField(help_text="What was written before is purged.")
    purged_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "consentful_withdrawal"
        indexes = [
            models.Index(fields=["tenant", "subject"], name="consentful_withdrawal_person"),
            models.Index(
                fields=["tenant", "id"], name="consentful_withdrawal_due",
                condition=models.Q(purged_at=None),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"withdrawal {self.pk}"


class Confirmation(Captured):
    """Consent that was asked for and is not given yet: whoever brings the token gives it."""

    noun: ClassVar[str] = "confirmation"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    subject = models.ForeignKey(Subject, on_delete=models.PROTECT)
    purpose = models.ForeignKey(Purpose, on_delete=models.PROTECT, db_index=False)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the token.")
    version = models.PositiveIntegerField()
    locale = models.CharField(max_length=35)
    consent_until = models.DateTimeField(null=True, help_text="When the consent would end.")
    actor = models.CharField(max_length=200)
    method = models.CharField(max_length=32)
    evidence = models.TextField(null=True)
    at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="When the token ends.")

    class Meta:
        db_table = "consentful_confirmation"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "purpose"], name="consentful_confirmation_pending"
            )
        ]

    def __str__(self) -> str:
        return f"confirmation {self.pk}"

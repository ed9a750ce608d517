"""Tenants, subjects, roles, tokens: the tables that must be read before a tenant is known."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from audit.models import Captured
from tenants.roles import Role

SLUG = RegexValidator(
    r"\A[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?\Z",
    "1 to 64 lower-case letters, digits, hyphens and underscores; a letter or digit at both ends.",
)


class Tenant(Captured):
    """An isolated customer. Nothing crosses from one to another."""

    noun: ClassVar[str] = "tenant"

    slug = models.CharField(max_length=64, unique=True, validators=[SLUG])
    name = models.CharField(max_length=200, blank=True)
    external_id = models.CharField(
        max_length=200, null=True, blank=True, unique=True,
        help_text="The host's own id of this organisation.",
    )  # fmt: skip
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "consentful_tenant"
        # Roles are guardian permissions on one tenant, never model-wide.
        permissions = [(role.codename, f"Can act as {role.value}") for role in Role]

    def __str__(self) -> str:
        return self.name or self.slug


class Subject(Captured):
    """A person that data is about, under the id that the host knows."""

    noun: ClassVar[str] = "subject"

    # Every index begins with the tenant: one of its own would answer nothing more.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    external_id = models.CharField(max_length=200, db_collation="C")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="The login that is this person, if any.",
    )  # fmt: skip
    # On this row, which the gate reads anyway; columns that came later are null where they say
    # nothing, since nulls stay out of a row's digest.
    restricted = models.CharField(
        max_length=8, null=True, editable=False,
        help_text="What may not be used: all, or some keys. Kept by a trigger on the restrictions.",
    )  # fmt: skip
    gpc_at = models.DateTimeField(
        null=True, editable=False, help_text="When Sec-GPC was first heard of this person."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    erased_at = models.DateTimeField(
        null=True, editable=False, help_text="Since when a pseudonym stands in the name's place."
    )

    class Meta:
        # consentful_subject_in_tenant, unique on (tenant, id), is in sql/tenants.sql: composite keys
        # point at it, and the admin pages by it.
        db_table = "consentful_subject"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "external_id"], name="consentful_subject_external_id"
            ),
            models.UniqueConstraint(fields=["tenant", "user"], name="consentful_subject_user"),
        ]

    def __str__(self) -> str:
        return self.external_id


class Guardianship(Captured):
    """One login that acts for one person who does not act alone, and how that is known."""

    noun: ClassVar[str] = "guardianship"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    subject = models.ForeignKey(Subject, on_delete=models.PROTECT, help_text="Who is acted for.")
    evidence = models.TextField(help_text="The court's paper, the birth certificate, the mandate.")
    expires_at = models.DateTimeField(
        null=True, help_text="When it ends by itself, as on the day a child comes of age."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "consentful_guardianship"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "subject"], name="consentful_guardianship_pair"
            )
        ]

    def __str__(self) -> str:
        return f"guardianship {self.pk}"


class Tombstone(Captured):
    """
    A name that was forgotten in a tenant, as a keyed digest: who has the name can ask for it.

    Points to no subject: what is kept about a forgotten person cannot be found from its name.
    """

    noun: ClassVar[str] = "tombstone"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False)
    digest = models.CharField(max_length=64)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+",
        help_text="The login that had the same name, and stands for it again if it comes back.",
    )  # fmt: skip
    at = models.DateTimeField()
    returned_at = models.DateTimeField(
        null=True, help_text="When the person consented anew, with nothing of before."
    )

    class Meta:
        db_table = "consentful_tombstone"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="consentful_tombstone_name")
        ]

    def __str__(self) -> str:
        return f"tombstone {self.pk}"


class TenantUserPermission(UserObjectPermissionBase, Captured):
    """One role of one user in one tenant."""

    noun: ClassVar[str] = "role"

    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_column="tenant_id")

    class Meta(UserObjectPermissionBase.Meta):
        db_table = "consentful_tenant_user_permission"
        verbose_name = "role of a user"
        verbose_name_plural = "roles of users"

    def __str__(self) -> str:
        return f"{self.permission.codename.removeprefix('act_as_')}: {self.user}"


class TenantGroupPermission(GroupObjectPermissionBase, Captured):
    """One role of one group in one tenant. Without this table guardian would use its generic one."""

    noun: ClassVar[str] = "group_role"

    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_column="tenant_id")

    class Meta(GroupObjectPermissionBase.Meta):
        db_table = "consentful_tenant_group_permission"
        verbose_name = "role of a group"
        verbose_name_plural = "roles of groups"

    def __str__(self) -> str:
        return f"{self.permission.codename.removeprefix('act_as_')}: the group {self.group}"


class Token(Captured):
    """A bearer credential, of which only the digest is kept."""

    noun: ClassVar[str] = "token"

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, null=True, blank=True,
        help_text="Confines the token to one tenant.",
    )  # fmt: skip
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    on_behalf_of = models.CharField(
        max_length=200, null=True, blank=True, db_collation="C",
        help_text="External id of the one subject that an agent reaches with this token.",
    )  # fmt: skip
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "consentful_token"
        constraints = [
            models.CheckConstraint(
                name="consentful_token_bound_to_tenant",
                condition=models.Q(on_behalf_of=None) | models.Q(tenant__isnull=False),
                violation_error_message="A token on behalf of a person belongs to one tenant.",
            )
        ]

    def __str__(self) -> str:
        return f"token {self.pk}"


class IdempotencyRecord(models.Model):
    """
    What an answer to one Idempotency-Key was, without any value: the repeated request supplies it.

    Not captured by the trail: it is a copy of what the trail already says.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    caller = models.CharField(max_length=64, help_text="Keyed digest of the credential's user.")
    key = models.CharField(max_length=64, help_text="Keyed digest of the Idempotency-Key.")
    request = models.CharField(max_length=64, help_text="Keyed digest of the whole request.")
    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, null=True)
    answer = models.JSONField(help_text="Status, revision and times. No value.")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "consentful_idempotency_record"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "caller", "key"], name="consentful_idempotency_key"
            )
        ]
        indexes = [models.Index(fields=["tenant", "created_at"], name="consentful_idempotency_age")]

    def __str__(self) -> str:
        return f"idempotency record {self.pk}"

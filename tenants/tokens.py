"""Bearer tokens: made, found by digest, revoked. The token itself is seen once and never stored."""

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM, Actor
from tenants.exceptions import NotFound, ValidationError
from tenants.models import Tenant, Token
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: Lets secret scanners recognise a leaked token.
PREFIX = "cst_"


def digest_of(credential: str) -> str:
    """Return the SHA-256 of a token in hexadecimal digits. 32 random bytes need no salt."""
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).hexdigest()


def issue_token(
    *,
    user: Any,
    tenant: Tenant | None = None,
    on_behalf_of: str | None = None,
    lifetime: timedelta = timedelta(days=90),
    actor: Actor = SYSTEM,
) -> tuple[str, Token]:
    """
    Make a token for `user` and return it with its row; it cannot be shown again.

    Args:
        tenant: confines the token to one tenant.
        on_behalf_of: external id of the one person that this agent's token reaches as ``me``.
            Without `tenant`, the one tenant in which the user is an agent is taken.
        lifetime: at least a second, at most ten years.

    Raises:
        ValidationError: a token on behalf of a person for a user who is no agent there, or of
            several tenants without naming one; a lifetime out of bounds.
        InvalidScope: `on_behalf_of` is no subject id.
    """
    if not timedelta(seconds=1) <= lifetime <= timedelta(days=3650):
        raise ValidationError("A token lives from one second to ten years.", pointer="/days")
    if on_behalf_of is not None:
        on_behalf_of = Scope.of_subject(on_behalf_of).name
        tenant = _tenant_of_agent(user, tenant)
    credential = PREFIX + secrets.token_urlsafe(32)
    # Whose it is must not be forgotten just now: the name would stay.
    with unit_of_work(
        tenant_id=tenant.pk if tenant else 0, actor=actor,
        subjects=() if on_behalf_of is None else (on_behalf_of,),
    ):  # fmt: skip
        token = Token.objects.create(
            tenant=tenant,
            user=user,
            on_behalf_of=on_behalf_of,
            digest=digest_of(credential),
            expires_at=RawSQL("consentful_now() + %s", [lifetime]),
        )
        token.refresh_from_db()
    return credential, token


def list_tokens() -> QuerySet[Token]:
    """Return the tokens that are neither expired nor revoked, oldest first."""
    return (
        Token.objects.filter(revoked_at=None, expires_at__gt=RawSQL("consentful_now()", []))
        .select_related("user", "tenant")
        .order_by("pk")
    )


def revoke_token(*, token_id: int, actor: Actor = SYSTEM) -> Token:
    """
    End a token's life: the next request with it gets 401.

    Raises:
        NotFound: no such token, or it was revoked before.
    """
    token = Token.objects.filter(pk=token_id, revoked_at=None).first()
    if token is None:
        raise NotFound(f"There is no token {token_id} that could be revoked.")
    with unit_of_work(tenant_id=token.tenant_id or 0, actor=actor):
        Token.objects.filter(pk=token_id).update(revoked_at=RawSQL("consentful_now()", []))
    return token


def _tenant_of_agent(user: Any, tenant: Tenant | None) -> Tenant:
    tenants = list(
        Tenant.objects.filter(
            tenantuserpermission__user=user,
            tenantuserpermission__permission__codename=Role.AGENT.codename,
        )
    )
    if tenant is not None:
        tenants = [one for one in tenants if one.pk == tenant.pk]
    if not tenants:
        raise ValidationError("Only an agent's token can stand for a person: grant the role first.")
    if len(tenants) > 1:
        raise ValidationError("This agent serves several tenants: name one with --tenant.")
    return tenants[0]

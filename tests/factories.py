"""Tenants, people and tokens for tests, made through the services alone."""

import copy
import uuid
from functools import cached_property
from typing import Any

from django.contrib.auth import get_user_model

from audit.actors import SYSTEM
from audit.models import Event
from consent.services import grant_purposes
from preferences.catalog import load_catalog
from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import create_tenant, grant_role
from tenants.tokens import issue_token
from tenants.units import unit_of_work

EVERYONE = ["subject", "operator", "agent"]
KINDS = ["user", "project", "repo", "branch", "global"]

#: `support` and `ads` rest on consent, `service` on a contract. Undeclared personal keys belong
#: to `service`, so that a test of values and addresses needs nobody's consent.
CATALOG: dict[str, Any] = {
    "purposes": [
        {
            "slug": "support",
            "title": "Support replies",
            "lawful_basis": "consent",
            "notices": [
                {"version": 1, "locale": "en", "text": "We remember how you like our replies."},
                {"version": 1, "locale": "de", "text": "Wir merken uns, wie Sie Antworten mögen."},
            ],
        },
        {
            "slug": "ads",
            "title": "Advertisements",
            "lawful_basis": "consent",
            "notices": [{"version": 1, "locale": "en", "text": "We show what you may like."}],
        },
        {"slug": "service", "title": "The service itself", "lawful_basis": "contract"},
    ],
    "definitions": [
        {
            "key": "reply_style",
            "purpose": "support",
            "schema": {"enum": ["brief", "detailed"]},
            "ttl_max": 31536000,
            "scopes": ["user"],
            "writers": EVERYONE,
            "description": "How much detail a reply should hold",
        },
        {"key": "tone", "purpose": "support", "scopes": ["user"], "writers": EVERYONE},
        {"key": "banner", "purpose": "ads", "scopes": ["user"], "writers": EVERYONE},
        {
            "key": "limited",
            "purpose": "service",
            "ttl_default": 60,
            "ttl_max": 120,
            "scopes": ["user"],
            "writers": EVERYONE,
        },
        {"key": "staff_note", "purpose": "service", "scopes": ["user"], "writers": ["operator"]},
        {
            "key": "theme",
            "purpose": "service",
            "schema": {"enum": ["light", "dark", None]},
            "default": "light",
            "scopes": KINDS,
            "writers": EVERYONE,
        },
        {"key": "policy", "purpose": "service", "scopes": ["project"], "writers": ["operator"]},
    ],
    "undeclared": {
        "user": "service", "project": True, "repo": True, "branch": True, "global": True,
    },
}  # fmt: skip


def unique(word: str) -> str:
    """Return a slug that no other test has."""
    return f"{word}-{uuid.uuid4().hex[:12]}"


def make_user(name: str) -> Any:
    """Return the user of that name; users are known to all tenants, their roles are not."""
    users = get_user_model()
    try:
        return users.objects.get(username=name)
    except users.DoesNotExist:
        return users.objects.create_user(username=name)


def make_tenant(catalog: dict[str, Any] | None = None) -> Tenant:
    """Return a fresh tenant with a catalogue."""
    tenant = create_tenant(slug=unique("t"))
    load_catalog(tenant=tenant, catalog=CATALOG if catalog is None else catalog)
    return tenant


def change_catalog(tenant: Tenant, **changes: Any) -> None:
    """Load the standard catalogue with some of its three parts replaced."""
    load_catalog(tenant=tenant, catalog={**copy.deepcopy(CATALOG), **changes})


def events_of(tenant: Tenant, *actions: str) -> list[Event]:
    """Return the tenant's events, oldest first; only those of `actions` where some are named."""
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        events = Event.objects.filter(tenant_id=tenant.pk).order_by("pk")
        return list(events.filter(action__in=actions) if actions else events)


class Persona:
    """One kind of caller in one tenant, and its token."""

    def __init__(
        self,
        tenant: Tenant,
        name: str,
        *roles: Role,
        subject: str | None = None,
        purposes: tuple[str, ...] = (),
        on_behalf_of: str | None = None,
    ) -> None:
        self.tenant = tenant
        self.user = make_user(name)
        for role in roles:
            grant_role(tenant=tenant, user=self.user, role=role, subject=subject)
        if purposes:
            grant_purposes(user_id=self.user.pk, tenant_id=tenant.pk, slugs=purposes, actor=SYSTEM)
        self.on_behalf_of = on_behalf_of

    @cached_property
    def token(self) -> str:
        """A token that works in this tenant alone."""
        return issue_token(user=self.user, tenant=self.tenant, on_behalf_of=self.on_behalf_of)[0]


def make_persona(tenant: Tenant, name: str) -> Persona:
    """Return a caller by its name in the tests; asking again adds nothing."""
    match name:
        case "alice" | "bob":
            return Persona(tenant, name, Role.MEMBER)
        case "agent":
            return Persona(tenant, "agent", Role.AGENT, purposes=("support", "service"))
        case "bound":
            return Persona(
                tenant, "bound", Role.AGENT, purposes=("support", "service"), on_behalf_of="alice"
            )
        case "operator":
            return Persona(tenant, "operator", Role.OPERATOR)
        case "auditor":
            return Persona(tenant, "auditor", Role.AUDITOR)
        case "owner":
            return Persona(tenant, "owner", Role.OWNER)
    raise LookupError(name)

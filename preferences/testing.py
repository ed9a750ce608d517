"""
What the tests of a host need: a tenant, a person in it, and what that person agreed to.

Made through the services alone, so that a test cannot rest on rows that the product could never
have. The `pytest` fixtures of `preferences.pytest_plugin` call these functions; other test runners
can do so themselves.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections
from django.db.models import EmailField

from audit.actors import SYSTEM
from consent.models import Decision, Purpose
from consent.selectors import list_purposes
from consent.services import decide
from preferences.catalog import load_catalog
from tenants.callers import Caller, find_caller
from tenants.models import Tenant
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.services import create_tenant, grant_role
from tenants.tokens import issue_token
from tenants.units import database, unit_of_work

#: For tests that need some catalogue, whichever: any personal key, with consent to `support`.
CATALOG: Mapping[str, Any] = {
    "purposes": [
        {
            "slug": "support",
            "title": "Support",
            "lawful_basis": "consent",
            "notices": [{"version": 1, "locale": "en", "text": "We remember what you prefer."}],
        }
    ],
    "undeclared": {
        "user": "support", "project": True, "repo": True, "branch": True, "global": True,
    },
}  # fmt: skip

#: The triggers that refuse TRUNCATE (bit 5 of a trigger's type stands for it).
GUARDS = """
    SELECT format('ALTER TABLE %s {} TRIGGER %I', t.tgrelid::regclass, t.tgname)
    FROM pg_trigger t WHERE t.tgtype & 32 <> 0 AND t.tgname ^@ 'consentful_'
"""


@dataclass(frozen=True)
class Person:
    """A user who is a member of one tenant, and the person that data is about."""

    tenant: Tenant
    user: Any

    @property
    def caller(self) -> Caller:
        """The person as `services` and `selectors` want to know who asks."""
        found = find_caller(tenant=self.tenant.slug, user_id=str(self.user.pk))
        if found is None:
            raise LookupError("The user is not active.")
        return found

    @property
    def scope(self) -> Scope:
        """Where this person's own preferences stand."""
        return Scope.of_subject(self.caller.subject or "")

    @cached_property
    def token(self) -> str:
        """A bearer token for the HTTP API, of this tenant alone."""
        return issue_token(user=self.user, tenant=self.tenant)[0]

    def give(self, *purposes: str) -> None:
        """Agree to the newest notice of these purposes; of all that rest on consent by default."""
        newest = {}
        with unit_of_work(tenant_id=self.tenant.pk, actor=SYSTEM):
            for purpose in list_purposes(tenant_id=self.tenant.pk):
                if purpose.lawful_basis == Purpose.LawfulBasis.CONSENT:
                    versions = [notice.version for notice in purpose.notices.all()]
                    newest[purpose.slug] = max(versions, default=None)
        for slug in purposes or newest:
            self._decide(slug, Decision.GIVEN, version=newest.get(slug))

    def withdraw(self, purpose: str) -> None:
        """Take consent back."""
        self._decide(purpose, Decision.WITHDRAWN)

    def _decide(self, purpose: str, decision: Decision, version: int | None = None) -> None:
        caller = self.caller
        decide(
            caller=caller,
            subject=caller.subject or "",
            purpose=purpose,
            decision=decision,
            version=version,
        )


def make_tenant(catalog: Mapping[str, Any] = CATALOG) -> Tenant:
    """Return a new tenant with a catalogue."""
    tenant = create_tenant(slug=f"test-{uuid.uuid4().hex[:12]}")
    load_catalog(tenant=tenant, catalog=dict(catalog))
    return tenant


def make_user() -> Any:
    """Return a new user of the host's own model, made from its login field alone."""
    model = get_user_model()
    name = f"person-{uuid.uuid4().hex[:12]}"
    if isinstance(model._meta.get_field(model.USERNAME_FIELD), EmailField):
        name += "@example.com"
    return model._default_manager.create_user(**{model.USERNAME_FIELD: name})


def make_person(tenant: Tenant, user: Any = None) -> Person:
    """Return a user as a member of the tenant; without `user`, a new one is made."""
    person = Person(tenant=tenant, user=make_user() if user is None else user)
    grant_role(tenant=tenant, user=person.user, role=Role.MEMBER)
    return person


def let_tests_flush() -> None:
    """
    Let this thread's connection empty the test database, as Django's `TransactionTestCase` does.

    TRUNCATE is refused on every table that the trail proves; the guards step aside for that one
    transaction. Never call it where the database is not thrown away.
    """
    connection = connections[database()]
    operations: Any = connection.ops
    if connection.vendor != "postgresql" or hasattr(operations, "consentful_flush"):
        return
    operations.consentful_flush = operations.sql_flush

    def sql_flush(*arguments: Any, **options: Any) -> list[str]:
        statements = operations.consentful_flush(*arguments, **options)
        with connection.cursor() as cursor:
            cursor.execute(GUARDS)
            guards = [guard for (guard,) in cursor.fetchall()]
        return [
            *(guard.format("DISABLE") for guard in guards),
            *statements,
            *(guard.format("ENABLE") for guard in guards),
        ]

    operations.sql_flush = sql_flush

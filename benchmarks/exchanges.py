"""Requests over HTTP, one after another, as one client sends them: to Consentful and to its peers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from rest_framework.authtoken.models import Token as PeerToken

from benchmarks.database import connect
from benchmarks.peers.models import Historied
from benchmarks.population import KEYS, VALUES, Population
from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import grant_role
from tenants.tokens import issue_token


@dataclass(frozen=True, slots=True)
class Message:
    """One request; `body` is JSON, or empty."""

    method: str
    path: str
    authorization: str = ""
    body: bytes = b""


class Conversation(Protocol):
    """What one client asks next, and what it learns from the answer."""

    def ask(self) -> Message:
        """Return the next request."""

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take what an answer's headers say, their names in lower case."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A person with credentials for Consentful and for the viewset beside it."""

    tenant_id: int
    tenant: str
    subject: str
    token: str
    peer_token: str
    #: Of their records in the viewset's table, by key.
    peer_rows: Mapping[str, int]


def invite(population: Population, number: int) -> Sequence[Guest]:
    """Give tokens to the first `number` people of the first tenant."""
    tenant_id, slug = next(iter(population.tenants.items()))
    tenant = Tenant.objects.get(pk=tenant_id)
    guests = []
    for count in range(1, number + 1):
        name = f"person-{count}"
        user, is_new = get_user_model()._default_manager.get_or_create(username=name)
        if is_new:
            grant_role(tenant=tenant, user=user, role=Role.MEMBER)
        rows = Historied.objects.filter(tenant_id=tenant_id, scope=f"user::{name}", key__in=KEYS)
        guests.append(
            Guest(
                tenant_id=tenant_id,
                tenant=slug,
                subject=name,
                token=issue_token(user=user, tenant=tenant)[0],
                peer_token=PeerToken.objects.get_or_create(user=user)[0].key,
                peer_rows=dict(rows.values_list("key", "pk")),
            )
        )
    return guests


class AskConstant:
    """Asks for what is always the same."""

    def ask(self) -> Message:
        return Message("GET", "/constant")

    def learn(self, headers: Mapping[str, str]) -> None:
        """There is nothing to learn."""


class AskRead:
    """Reads a person's own records."""

    def __init__(self, guest: Guest, random: Random) -> None:
        self.random = random
        self.messages = [
            Message("GET", path_of(guest, key), f"Bearer {guest.token}") for key in KEYS
        ]

    def ask(self) -> Message:
        return self.random.choice(self.messages)

    def learn(self, headers: Mapping[str, str]) -> None:
        """There is nothing to learn."""


class AskWrite:
    """Writes a person's own records, each over the version that was seen last."""

    def __init__(self, guest: Guest, random: Random) -> None:
        self.guest = guest
        self.random = random
        self.revisions = find_revisions(guest)
        self.key = ""

    def ask(self) -> Message:
        self.key = self.random.choice(KEYS)
        body = {"value": self.random.choice(VALUES), "revision": self.revisions[self.key]}
        return Message(
            "PUT",
            path_of(self.guest, self.key),
            f"Bearer {self.guest.token}",
            json.dumps(body).encode(),
        )

    def learn(self, headers: Mapping[str, str]) -> None:
        self.revisions[self.key] = headers["etag"].strip('"')


class AskPeerRead:
    """Reads the same records through the viewset."""

    def __init__(self, guest: Guest, random: Random) -> None:
        self.random = random
        self.messages = [
            Message("GET", f"/viewset/{row}/", f"Token {guest.peer_token}")
            for row in guest.peer_rows.values()
        ]

    def ask(self) -> Message:
        return self.random.choice(self.messages)

    def learn(self, headers: Mapping[str, str]) -> None:
        """There is nothing to learn."""


class AskPeerWrite:
    """Writes the same records through the viewset, which overwrites whatever stands there."""

    def __init__(self, guest: Guest, random: Random) -> None:
        self.guest = guest
        self.random = random

    def ask(self) -> Message:
        key, row = self.random.choice(list(self.guest.peer_rows.items()))
        body: dict[str, Any] = {
            "tenant_id": self.guest.tenant_id,
            "scope": f"user::{self.guest.subject}",
            "key": key,
            "value": self.random.choice(VALUES),
        }
        return Message(
            "PUT",
            f"/viewset/{row}/",
            f"Token {self.guest.peer_token}",
            json.dumps(body).encode(),
        )

    def learn(self, headers: Mapping[str, str]) -> None:
        """There is nothing to learn."""


def path_of(guest: Guest, key: str) -> str:
    """Return the path of one of a person's own records."""
    return f"/api/v1/tenants/{guest.tenant}/preferences/me/{key}"


def find_revisions(guest: Guest) -> dict[str, str]:
    """Return the revision of each of a person's records, by key."""
    with connect(as_owner=True) as owner:
        found = owner.execute(
            "SELECT key, revision FROM consentful_preference WHERE tenant_id = %s AND scope = %s",
            [guest.tenant_id, f"user::{guest.subject}"],
        )
        return dict(found.fetchall())

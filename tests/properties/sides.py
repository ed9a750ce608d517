"""One tenant as the service has it and as the model has it, and how the two are compared."""

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx
from django.test import Client

from tenants.models import Tenant
from tests.factories import CATALOG
from tests.http.client import API, Answer
from tests.http.conftest import Clock, World
from tests.properties.model import Model, Refused, Who, text
from tests.properties.stage import NOTICES, RULES, UNDECLARED, WHO

#: What events are compared in.
SHOWN = (
    "action", "outcome", "actor", "on_behalf_of", "subject", "target", "purpose",
    "revision_before", "revision_after", "reason",
)  # fmt: skip


class Side:
    """
    One tenant, twice.

    Attributes:
        wire: a client of a running server; without it, requests are answered in this process.
        revisions: by address, every revision that ever stood there.
    """

    _client = Client(raise_request_exception=False)

    def __init__(self, clock: Clock, wire: httpx.Client | None) -> None:
        self.world = World({**copy.deepcopy(CATALOG), "undeclared": UNDECLARED})
        self.model = Model(clock, RULES, NOTICES)
        self.wire = wire
        self.apis: dict[str, API] = {name: getattr(self.world, name) for name in WHO}
        self.revisions: dict[tuple[str, str], list[str]] = {}
        self.last_event: int = self.newest_events(1)[0]["id"]

    @property
    def tenant(self) -> Tenant:
        return self.world.tenant

    def send(
        self, who: Who, method: str, path: str, body: Any = None, *,
        query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Ask the service as `who`; members of the query that are None are left out."""
        api = self.apis[who.name]
        given = {name: one for name, one in (query or {}).items() if one is not None}
        if self.wire is None:
            return api.request(
                method, path, body, query=given, headers=dict(headers or {}), client=self._client
            )
        response = self.wire.request(
            method, f"{api.base}/{path}", json=body, params=given,
            headers={"Authorization": f"Bearer {api.token}", **(headers or {})},
        )  # fmt: skip
        return Answer(response, method, f"{api.base}/{path}")

    # The trail ---------------------------------------------------------------------------------

    def check_events(self, *, is_ordered: bool = True) -> None:
        """The promised events, and no other, since the last one that was seen."""
        found = self.take_events(len(self.model.events))
        events = [{name: one[name] for name in SHOWN} for one in found]
        for event in events:
            if event["action"].startswith(("consent.", "subject.")):
                # The revision of a row that the contract does not show.
                assert event["revision_before"] is None
                assert event["revision_after"] is not None
                event["revision_after"] = None
        told = list(self.model.events)
        if not is_ordered:
            events.sort(key=_place_of)
            told.sort(key=_place_of)
        assert events == told

    def check_actions(self, *actions: str, actor: str = "system") -> None:
        """What the tenant's owner, or a person, just did, and nothing else."""
        found = self.take_events(len(actions))
        assert [(one["action"], one["actor"]) for one in found] == [
            (action, actor) for action in actions
        ]

    def take_events(self, count: int) -> list[Any]:
        before, *found = self.newest_events(count + 1)
        assert before["id"] == self.last_event, f"more than {count} events: {[before, *found]}"
        self.last_event = [before, *found][-1]["id"]
        return found

    def newest_events(self, count: int) -> list[Any]:
        answer = self.send(WHO["auditor"], "GET", "audit", query={"limit": count})
        assert answer.status == 200
        found: list[Any] = answer.json["results"][::-1]
        return found

    # What a person sees ------------------------------------------------------------------------

    def check_person(self, who: Who) -> None:
        """The list, everything that is held, and the ledger. None of them leaves an event."""
        model = self.model
        compare(self.send(who, "GET", "preferences"), model.listed(who))
        compare(self.send(who, "GET", "subjects/me/data"), model.data(who, "me"), is_whole=False)


def compare(answer: Answer, promised: Any, *, is_whole: bool = True) -> None:
    """Status, code and body, to the last member; or to the last one promised."""
    if isinstance(promised, Refused):
        assert answer.outcome == (promised.status, promised.code), told(answer, promised)
        check_facts(answer.json, promised)
        return
    status, body = promised
    assert answer.status == status, told(answer, promised)
    if body is None:
        assert answer.content == b""
    else:
        assert (answer.json if is_whole else part(answer.json, body)) == body


def part(given: Any, promised: Any) -> Any:
    """Return of what was given the members that were promised; lists stay whole."""
    if isinstance(given, dict) and isinstance(promised, dict):
        return {name: part(one, promised[name]) for name, one in given.items() if name in promised}
    if isinstance(given, list) and isinstance(promised, list) and len(given) == len(promised):
        return [part(*pair) for pair in zip(given, promised, strict=True)]
    return given


def check_facts(problem: Mapping[str, Any], promised: Refused) -> None:
    """What stands beside the code: the purpose that refused, the version that stands there."""
    if promised.code in ("consent_required", "purpose_not_allowed", "restricted"):
        assert problem["purpose"] == promised.purpose
    if promised.code in ("stale_revision", "already_exists"):
        assert problem["current"] == promised.current


def compare_results(answer: Answer, promised: Sequence[Any]) -> None:
    """Every result of a batch."""
    results = answer.json["results"]
    assert len(results) == len(promised)
    for result, one in zip(results, promised, strict=True):
        if isinstance(one, Refused):
            found = result["status"], (result["body"] or {}).get("code")
            assert found == (one.status, one.code), told(answer, one)
            check_facts(result["body"], one)
        else:
            assert (result["status"], result["body"]) == one


def told(answer: Answer, promised: Any) -> str:
    if isinstance(promised, Refused):
        promised = promised.status, promised.code, promised.purpose, promised.current
    return f"{answer!r}, promised {promised!r}"


def spelled(members: Mapping[str, Any]) -> dict[str, Any]:
    """Moments as text."""
    return {name: text(one) if isinstance(one, datetime) else one for name, one in members.items()}


def _place_of(event: Mapping[str, Any]) -> tuple[str, str]:
    target = event["target"]
    return target["scope"] or "", target["key"] or ""

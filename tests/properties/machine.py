"""
Requests drawn at random to two tenants, each answered twice: by the service and by the model.

Every step compares status, code and body, then what the persons see, their ledger, and the trail.
Ends each run with the proof of both trails.
"""

import copy
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
from django.test import Client
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from audit.actors import SYSTEM
from consent.models import Purpose
from consent.selectors import get_purpose
from consent.services import grant_purposes, publish_notice, revoke_purposes
from preferences.jobs import purge_all
from tenants.models import Tenant
from tenants.units import unit_of_work
from tests.factories import CATALOG, change_catalog
from tests.http.client import API, Answer
from tests.http.conftest import Clock, World
from tests.properties.model import ON_CONSENT, Model, Refused, Rule, Who, person_of, text
from tests.trails import prove

WHO = {
    who.name: who
    for who in (
        Who("alice", "member", me="alice"),
        Who("bob", "member", me="bob"),
        Who("agent", "agent"),
        Who("bound", "agent", me="alice", behalf="alice"),
        Who("operator", "operator"),
        Who("auditor", "auditor"),
    )
}
BY_ITSELF = Who("system", "system")

#: Undeclared keys rest on a contract in personal scopes, are shared in projects, and are refused
#: in the global scope. `tone` is served by a purpose that may change.
UNDECLARED = {"user": "service", "project": True, "repo": True, "branch": True, "global": False}
THEME = Rule("service", values=("light", "dark", None))
RULES: dict[str, dict[str, Rule]] = {
    "user": {
        "tone": Rule("support"),
        "banner": Rule("ads"),
        "limited": Rule("service", default_ttl=60, most_ttl=120),
        "staff_note": Rule("service", writers=frozenset({"operator"})),
        "theme": THEME,
        "": Rule("service"),
    },
    "project": {
        "policy": Rule("service", writers=frozenset({"operator"})), "theme": THEME, "": Rule(),
    },
    "global": {"theme": THEME},
}  # fmt: skip

NOTICES = {
    purpose["slug"]: purpose["notices"][0]["text"]
    for purpose in CATALOG["purposes"]
    if purpose["slug"] in ON_CONSENT
}

#: What a trail's events are compared in, beside the place where each stands.
SHOWN = (
    "action", "outcome", "actor", "on_behalf_of", "subject", "target", "purpose",
    "revision_before", "revision_after", "reason",
)  # fmt: skip

sides = st.sampled_from([0, 0, 0, 1])
people = st.sampled_from([*WHO, "alice", "alice", "agent", "bound"]).map(WHO.__getitem__)
scopes = st.sampled_from(["me", "me", "me", "user::alice", "user::bob", "user::carol", "project::x", "global"])  # fmt: skip
persons = st.sampled_from(["me", "me", "alice", "bob", "carol"])
keys = st.sampled_from(["tone", "tone", "banner", "limited", "theme", "note", "staff_note", "policy"])  # fmt: skip
purposes = st.sampled_from(ON_CONSENT)
reasons = st.sampled_from([None, "asked by mail", "asked by mail"])
values = st.sampled_from(["light", "dark", None, "brief", 1, True, [1], {"a": 1}])
#: Seconds from now; 0 is this very moment, which has passed already.
delays = st.sampled_from([0, 1, 60, 120, 121, 3600])
deadlines = st.one_of(
    st.just({}),
    st.just({}),
    st.sampled_from([1, 60, 120, 121, None]).map(lambda ttl: {"ttl_seconds": ttl}),
    delays.map(lambda seconds: {"expires_at": seconds}),
)
modes = st.sampled_from(
    ["create", "if_none_match", "replace", "replace", "any", "upsert", "upsert"]
)
whose = st.sampled_from(["newest", "newest", "older", "foreign", "unknown"])
extras = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([["a"], ["a", "b"], []]),
        "metadata": st.sampled_from([{"m": 1}, {}]),
        "detail": st.just("said so"),
    },
)
writes = st.fixed_dictionaries(
    {"value": values, "mode": modes, "revision": whose, "in_header": st.booleans()}
)
operations = st.lists(
    st.fixed_dictionaries({
        "op": st.sampled_from(["put", "put", "get", "delete"]), "scope": scopes, "key": keys,
        "value": values, "mode": st.sampled_from(["create", "replace", "upsert", "upsert"]),
        "revision": whose, "deadline": deadlines,
    }),
    min_size=1, max_size=5,
)  # fmt: skip


class Side:
    """One tenant: the service's and the model's."""

    def __init__(self, clock: Clock) -> None:
        self.world = World({**copy.deepcopy(CATALOG), "undeclared": UNDECLARED})
        self.model = Model(clock, RULES, NOTICES)
        for name in WHO:
            getattr(self.world, name)
        #: By address, every revision that ever stood there; and all of them, with all entries.
        self.revisions: dict[tuple[str, str], list[str]] = {}
        self.seen: set[str] = set()
        self.last_event: int = self.trail(1)[0]["id"]

    @property
    def tenant(self) -> Tenant:
        return self.world.tenant

    def skip_trail(self) -> None:
        """Take what the owner did as seen; the proof at the end covers it."""
        self.last_event = self.trail(1)[0]["id"]

    def trail(self, count: int) -> list[Any]:
        """The newest events, oldest first."""
        api: API = self.world.auditor
        answer = api.get("audit", query={"limit": count}, client=Machine.client)
        assert answer.status == 200
        found: list[Any] = answer.json["results"][::-1]
        return found


class Machine(RuleBasedStateMachine):
    """The rules. `clock` and, for real HTTP, `wire` are given by whoever runs it."""

    clock: ClassVar[Clock]
    client: ClassVar[Client] = Client(raise_request_exception=False)
    wire: ClassVar[httpx.Client | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.clock.restart()
        self.sides = [Side(self.clock), Side(self.clock)]

    # What is compared --------------------------------------------------------------------------

    def send(
        self, side: Side, who: Who, method: str, path: str, body: Any = None,
        query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Ask the service as `who`, in this process or over real HTTP."""
        api: API = getattr(side.world, who.name)
        given = {name: one for name, one in (query or {}).items() if one is not None}
        if self.wire is None:
            return api.request(
                method, path, body, query=given, headers=dict(headers or {}), client=self.client
            )
        response = self.wire.request(
            method, f"{api.base}/{path}", json=body, params=given,
            headers={"Authorization": f"Bearer {api.token}", **(headers or {})},
        )  # fmt: skip
        return Answer(response, method, f"{api.base}/{path}")

    def compare(self, answer: Answer, promised: Any) -> None:
        told = f"{answer!r}, promised {describe(promised)}"
        if isinstance(promised, Refused):
            assert answer.outcome == (promised.status, promised.code), told
            check_facts(answer.json, promised)
            return
        status, body = promised
        assert answer.status == status, told
        if body is None:
            assert answer.content == b"", told
        elif status in (200, 201):
            assert answer.json == body

    def check(self, side: Side, *about: str | None, is_ordered: bool = True) -> None:
        """Compare the trail of this step, and what the persons of the step now see."""
        check_trail(side, side.model.events, is_ordered)
        for other in self.sides:
            if other is not side:
                check_trail(other, [], is_ordered=True)
        seen = {person for person in about if person in ("alice", "bob")} or {"alice"}
        for person in sorted(seen):
            self.check_person(side, WHO[person])

    def check_person(self, side: Side, who: Who) -> None:
        """The list, everything that is held, the ledger: none of them leaves an event."""
        for path, promise in (
            ("preferences", side.model.listed),
            ("subjects/me/data", lambda who: side.model.data(who, "me")),
            ("consents/me", lambda who: side.model.states(who, "me")),
        ):
            self.compare(self.send(side, who, "GET", path), promise(who))

    def learn(self, side: Side, scope: str, key: str, who: Who, revision: str | None) -> str | None:
        """A revision that the service chose: never seen before, in any tenant."""
        if revision is None:
            return None
        assert len(revision) == 32
        assert set(revision) <= set("0123456789abcdef")
        assert not any(revision in other.seen for other in self.sides)
        side.seen.add(revision)
        canonical = f"user::{who.me}" if scope == "me" else scope
        side.revisions.setdefault((canonical, key), []).append(revision)
        return revision

    def pick(self, side: Side, who: Who, scope: str, key: str, whose: str) -> str:
        """A revision of this address or of another; 32 zeros where there is none of the kind."""
        canonical = f"user::{who.me}" if scope == "me" else scope
        here = side.revisions.get((canonical, key), [])
        if whose == "newest" and here:
            return here[-1]
        if whose == "older" and len(here) > 1:
            return here[-2]
        if whose == "foreign":
            for one in (side, *self.sides):
                for address, found in one.revisions.items():
                    if one is not side or address != (canonical, key):
                        return found[-1]
        return "0" * 32

    # Preferences -------------------------------------------------------------------------------

    @rule(number=sides, who=people, scope=scopes, key=keys, write=writes, more=extras, until=deadlines)  # fmt: skip
    def put(
        self, number: int, who: Who, scope: str, key: str, write: dict[str, Any],
        more: dict[str, Any], until: dict[str, Any],
    ) -> None:  # fmt: skip
        side = self.sides[number]
        asked = {**write, **more, **self.timed(until)}
        asked["revision"] = self.pick(side, who, scope, key, write["revision"])
        body = {"value": asked["value"], **spelled(self.timed(until))}
        body |= {name: more[name] for name in ("tags", "metadata") if name in more}
        if "detail" in more:
            body["provenance"] = {"detail": more["detail"]}
        headers, query = {}, {}
        match asked["mode"]:
            case "if_none_match":
                headers["If-None-Match"] = "*"
            case "any":
                headers["If-Match"] = "*"
            case "upsert":
                query["mode"] = "upsert"
            case "replace" if write["in_header"]:
                headers["If-Match"] = f'"{asked["revision"]}"'
            case "replace":
                body["revision"] = asked["revision"]
        answer = self.send(side, who, "PUT", path_of(scope, key), body, query, headers)
        fresh = self.learn(side, scope, key, who, fresh_revision(answer))
        promised = side.model.answer(who, lambda: side.model.put(who, scope, key, asked, fresh))
        self.compare(answer, promised)
        if answer.status < 300:
            assert answer.etag == fresh
        self.check(side, person_of(scope), who.me)

    @rule(number=sides, who=people, scope=scopes, key=keys, method=st.sampled_from(["GET", "HEAD", "GET"]), tag=st.booleans(), why=reasons)  # fmt: skip
    def get(
        self, number: int, who: Who, scope: str, key: str, method: str, tag: bool, why: str | None
    ) -> None:
        side, model = self.sides[number], self.sides[number].model
        known = self.pick(side, who, scope, key, "newest")
        headers = {"If-None-Match": f'"{known}"'} if tag else {}
        answer = self.send(side, who, method, path_of(scope, key), None, {"reason": why}, headers)
        promised = model.answer(who, lambda: model.get(who, scope, key, why))
        if not isinstance(promised, Refused):
            body = promised[1]
            assert answer.etag == body["revision"]
            if tag and known == body["revision"]:
                promised = 304, None
            elif method == "HEAD":
                promised = 200, None
        elif method == "HEAD":
            promised = promised.status, None
        self.compare(answer, promised)
        check_trail(side, model.events, is_ordered=True)

    @rule(number=sides, who=people, scope=scopes, key=keys, which=st.one_of(st.none(), whose, st.just("*")), in_header=st.booleans(), why=reasons)  # fmt: skip
    def delete(
        self, number: int, who: Who, scope: str, key: str, which: str | None, in_header: bool,
        why: str | None,
    ) -> None:  # fmt: skip
        side, model = self.sides[number], self.sides[number].model
        revision = which
        if which not in (None, "*"):
            revision = self.pick(side, who, scope, key, str(which))
        headers, query = {}, {"reason": why}
        if revision == "*":
            headers["If-Match"] = "*"
        elif revision is not None and in_header:
            headers["If-Match"] = f'"{revision}"'
        elif revision is not None:
            query["revision"] = revision
        answer = self.send(side, who, "DELETE", path_of(scope, key), None, query, headers)
        promised = model.answer(who, lambda: model.delete(who, scope, key, revision, why))
        self.compare(answer, promised)
        self.check(side, person_of(scope), who.me)

    @rule(number=sides, who=people, asked=operations, is_atomic=st.booleans(), why=reasons)
    def batch(
        self, number: int, who: Who, asked: list[dict[str, Any]], is_atomic: bool, why: str | None
    ) -> None:
        side, model = self.sides[number], self.sides[number].model
        sent, told = [], []
        for one in asked:
            sent_one = {name: one[name] for name in ("op", "scope", "key")}
            told_one = {**one, **self.timed(one["deadline"])}
            told_one["revision"] = self.pick(side, who, one["scope"], one["key"], one["revision"])
            if one["op"] == "put":
                sent_one |= {"value": one["value"], **spelled(self.timed(one["deadline"]))}
                if one["mode"] == "upsert":
                    sent_one["mode"] = "upsert"
            if (one["op"], one["mode"]) in (("put", "replace"), ("delete", "replace")):
                sent_one["revision"] = told_one["revision"]
            elif one["op"] == "delete":
                told_one["revision"] = None
            sent.append(sent_one)
            told.append(told_one)
        body = {"operations": sent, "atomic": is_atomic}
        answer = self.send(side, who, "POST", "preferences/batch", body, {"reason": why})
        results = answer.json.get("results", [])
        fresh: list[str | None] = [None] * len(asked)
        for index, (one, result) in enumerate(zip(asked, results, strict=False)):
            if one["op"] == "put" and result["status"] in (200, 201):
                revision = result["body"]["revision"]
                fresh[index] = self.learn(side, one["scope"], one["key"], who, revision)
        promised = model.answer(who, lambda: run_batch(model, who, told, is_atomic, fresh, why))
        if isinstance(promised, Refused):
            self.compare(answer, promised)
            promised_results: Sequence[Any] = getattr(promised, "results", [])
        else:
            assert answer.status == 200
            promised_results = promised
        told = f"{answer!r}, promised {[describe(one) for one in promised_results]}"
        assert len(results) == len(promised_results), told
        for result, one in zip(results, promised_results, strict=True):
            if isinstance(one, Refused):
                assert (result["status"], result["body"]["code"]) == (one.status, one.code), told
                check_facts(result["body"], one)
            else:
                assert (result["status"], result["body"]) == one
        self.check(side, "alice", "bob", is_ordered=False)

    @rule(number=sides, who=people, scope=st.one_of(st.none(), scopes), prefix=st.sampled_from(["", "t", "no"]), tag=st.sampled_from([None, None, "a", "b"]), purpose=st.sampled_from([None, None, "support", "service"]), why=reasons)  # fmt: skip
    def look(
        self, number: int, who: Who, scope: str | None, prefix: str, tag: str | None,
        purpose: str | None, why: str | None,
    ) -> None:  # fmt: skip
        side, model = self.sides[number], self.sides[number].model
        query = {
            "scope": scope, "key_prefix": prefix or None, "tag": tag, "purpose": purpose,
            "reason": why,
        }  # fmt: skip
        answer = self.send(side, who, "GET", "preferences", query=query)
        promised = model.answer(
            who, lambda: model.listed(who, scope, prefix, tag, purpose, reason=why)
        )
        self.compare(answer, promised)
        check_trail(side, model.events, is_ordered=True)

    @rule(number=sides, who=people, asked=st.lists(scopes, min_size=1, max_size=4))
    def resolve(self, number: int, who: Who, asked: list[str]) -> None:
        side, model = self.sides[number], self.sides[number].model
        answer = self.send(side, who, "GET", "preferences/effective", query={"scope": asked})
        self.compare(answer, model.answer(who, lambda: model.effective(who, asked)))
        check_trail(side, model.events, is_ordered=True)

    # Consent -----------------------------------------------------------------------------------

    @rule(
        number=sides, who=people, person=persons, purpose=st.sampled_from([*ON_CONSENT, *ON_CONSENT, "service", "unheard"]),
        decision=st.sampled_from(["given", "given", "given", "withdrawn", "refused"]),
        version=st.sampled_from([None, 1, 1, 2, 2, 3]), until=st.one_of(st.none(), delays),
        evidence=st.sampled_from([None, "by mail"]), entry=st.sampled_from([None, None, "newest", "older"]),
    )  # fmt: skip
    def decide(
        self, number: int, who: Who, person: str, purpose: str, decision: str,
        version: int | None, until: int | None, evidence: str | None, entry: str | None,
    ) -> None:  # fmt: skip
        side, model = self.sides[number], self.sides[number].model
        body: dict[str, Any] = {"decision": decision, "version": version, "evidence": evidence}
        if until is not None:
            body["expires_at"] = self.clock.now + timedelta(seconds=until)
        past = model.ledger.get((str(who.me) if person == "me" else person, purpose), [])
        if entry is not None and past:
            body["entry"] = past[-1 if entry == "newest" else 0]["entry"]
        path = f"consents/{person}/{purpose}"
        answer = self.send(side, who, "PUT", path, spelled(body))
        fresh = answer.json.get("entry")
        if fresh is not None and fresh in side.seen:
            fresh = None  # an older entry, told again
        promised = model.answer(who, lambda: model.decide(who, person, purpose, body, fresh))
        side.seen |= {fresh} if fresh else set()
        self.compare(answer, promised)
        self.check(side, person, who.me)

    @rule(number=sides, who=people, person=persons, purpose=purposes, what=st.sampled_from(["data", "states", "past"]), why=reasons)  # fmt: skip
    def ask_about(
        self, number: int, who: Who, person: str, purpose: str, what: str, why: str | None
    ) -> None:
        side, model = self.sides[number], self.sides[number].model
        path, promise = {
            "data": (f"subjects/{person}/data", lambda: model.data(who, person, why)),
            "states": (f"consents/{person}", lambda: model.states(who, person, why)),
            "past": (
                f"consents/{person}/{purpose}/history",
                lambda: model.past(who, person, purpose, why),
            ),
        }[what]
        answer = self.send(side, who, "GET", path, query={"reason": why})
        self.compare(answer, model.answer(who, promise))
        check_trail(side, model.events, is_ordered=True)

    # What the tenant's owner and time do -------------------------------------------------------

    @rule(number=sides, agent=st.sampled_from(["agent", "bound"]), purpose=st.sampled_from([*ON_CONSENT, "service"]))  # fmt: skip
    def grant_or_revoke(self, number: int, agent: str, purpose: str) -> None:
        """Give an agent a purpose that it lacks, or take it away."""
        side = self.sides[number]
        user_id, serves = side.world.personas[agent].user.pk, side.model.serves[agent]
        change = {"tenant_id": side.tenant.pk, "user_id": user_id, "actor": SYSTEM}
        if purpose in serves:
            assert revoke_purposes(slugs=[purpose], **change) == 1
            serves.remove(purpose)
        else:
            grant_purposes(slugs=[purpose], **change)
            serves.add(purpose)
        side.skip_trail()

    @rule(number=sides, purpose=purposes, is_material=st.booleans())
    def publish(self, number: int, purpose: str, is_material: bool) -> None:
        """A new notice; a material one outdates what was given to those before it."""
        side, model = self.sides[number], self.sides[number].model
        version = max(model.notices[purpose]) + 1
        if version > 3:
            return
        words = f"{purpose} {version}"
        with unit_of_work(tenant_id=side.tenant.pk, actor=SYSTEM):
            row: Purpose = get_purpose(tenant_id=side.tenant.pk, slug=purpose)
            publish_notice(
                purpose=row, version=version, locale="en", text=words, is_material=is_material,
                actor=SYSTEM,
            )  # fmt: skip
        model.notices[purpose][version] = words
        if is_material:
            model.required[purpose] = version
        side.skip_trail()
        self.check_person(side, WHO["alice"])

    @rule(number=sides)
    def repurpose(self, number: int) -> None:
        """From now on `tone` serves the other purpose; what is stored keeps its own."""
        side, model = self.sides[number], self.sides[number].model
        other = "ads" if model.rules["user"]["tone"].purpose == "support" else "support"
        definitions = copy.deepcopy(CATALOG["definitions"])
        next(one for one in definitions if one["key"] == "tone")["purpose"] = other
        purposes = copy.deepcopy(CATALOG["purposes"])
        change_catalog(
            side.tenant, definitions=definitions, purposes=purposes, undeclared=UNDECLARED
        )
        model.rules["user"]["tone"] = Rule(other)
        side.skip_trail()

    @rule()
    def purge(self) -> None:
        """Housekeeping works on every tenant at once."""
        for side in self.sides:
            side.model.events = []
            side.model.purge(BY_ITSELF)
        purge_all()
        for side in self.sides:
            check_trail(side, side.model.events, is_ordered=False)
        self.check_person(self.sides[0], WHO["alice"])

    @rule(seconds=st.sampled_from([0.000001, 1, 30, 60, 3600]))
    def wait(self, seconds: float) -> None:
        self.move_to(self.clock.now + timedelta(seconds=seconds))

    @rule(is_before=st.booleans())
    def wait_for_a_deadline(self, is_before: bool) -> None:
        """To the very moment of the next deadline, or to the microsecond before it."""
        ahead = [moment for side in self.sides for moment in deadlines_of(side.model)]
        ahead = [moment for moment in ahead if moment > self.clock.now]
        if ahead:
            self.move_to(min(ahead) - timedelta(microseconds=1 if is_before else 0))

    def move_to(self, moment: datetime) -> None:
        self.clock.set(moment)
        for side in self.sides:
            for name in ("alice", "bob"):
                self.check_person(side, WHO[name])

    def timed(self, until: Mapping[str, Any]) -> dict[str, Any]:
        """A drawn deadline as the moment that it means now."""
        if "expires_at" not in until:
            return dict(until)
        return {"expires_at": self.clock.now + timedelta(seconds=until["expires_at"])}

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:
            return  # a step failed: what it found matters, not what followed from it
        for side in self.sides:
            for name in ("alice", "bob"):
                self.check_person(side, WHO[name])
            prove(side.tenant)


def run_batch(
    model: Model, who: Who, told: Sequence[dict[str, Any]], is_atomic: bool,
    fresh: Sequence[str | None], why: str | None,
) -> list[Any]:  # fmt: skip
    results, failed = model.batch(who, told, is_atomic, fresh, why)
    if failed is not None:
        failed.results = results  # type: ignore[attr-defined]
        raise failed
    return results


def check_trail(side: Side, promised: Sequence[Mapping[str, Any]], is_ordered: bool) -> None:
    """The promised events, no more, right after the last one that was seen before."""
    found = side.trail(len(promised) + 1)
    assert found[0]["id"] == side.last_event, f"events beside the promised: {found}"
    side.last_event = found[-1]["id"]
    events = [{name: one[name] for name in SHOWN} for one in found[1:]]
    told = [dict(one) for one in promised]
    for event in events:
        if event["action"].startswith(("consent.", "subject.")):
            # The revision of a row that the contract does not show.
            assert event["revision_before"] is None
            assert event["revision_after"] is not None
            event["revision_after"] = None
    if not is_ordered:
        events.sort(key=place_of)
        told.sort(key=place_of)
    assert events == told


def place_of(event: Mapping[str, Any]) -> tuple[str, str]:
    target = event["target"]
    return target["scope"] or "", target["key"] or ""


def deadlines_of(model: Model) -> list[datetime]:
    rows = [row["expires_at"] for row in model.rows.values()]
    entries = [entry["expires_at"] for past in model.ledger.values() for entry in past[-1:]]
    return [moment for moment in (*rows, *entries) if moment is not None]


def check_facts(body: Mapping[str, Any], promised: Refused) -> None:
    """What stands beside the code: the purpose that refused, the version that stands there."""
    if promised.code in ("consent_required", "purpose_not_allowed"):
        assert body["purpose"] == promised.purpose
    if promised.code in ("stale_revision", "already_exists"):
        assert body["current"] == promised.current


def fresh_revision(answer: Answer) -> str | None:
    return answer.json["revision"] if answer.status in (200, 201) else None


def path_of(scope: str, key: str) -> str:
    return f"preferences/{quote(scope, safe=':')}/{key}"


def spelled(members: Mapping[str, Any]) -> dict[str, Any]:
    """Moments as text."""
    return {name: text(one) if isinstance(one, datetime) else one for name, one in members.items()}


def describe(promised: Any) -> str:
    if isinstance(promised, Refused):
        return f"{promised.status} {promised.code} {promised.current!r} {promised.purpose}"
    return json.dumps(promised, default=str)

"""
Requests drawn at random to two tenants, each answered twice: by the service and by the model.

Every step compares status, code and body, then the trail of both tenants, then what the persons
concerned are shown. Each run ends with the proof of both trails.
"""

import copy
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from audit import actors
from consent.selectors import get_purpose
from consent.services import grant_purposes, publish_notice, revoke_purposes
from preferences.services import purge_expired
from tenants.units import unit_of_work
from tests.factories import CATALOG, change_catalog
from tests.http.conftest import Clock
from tests.properties.model import ON_CONSENT, Model, Refused, Rule, Who, person_of
from tests.properties.sides import Side, compare, compare_results, spelled
from tests.properties.stage import (
    SYSTEM,
    UNDECLARED,
    WHO,
    beginnings,
    concerned,
    deadlines,
    deciders,
    decisions,
    extras,
    keys,
    operations,
    people,
    places,
    purposes,
    reasons,
    scopes,
    seldom,
    sides,
    weighted,
    whose,
    writes,
)  # fmt: skip
from tests.trails import prove

type Place = tuple[Who, str]

#: A write that is right if the record is still there.
REPLACE = {"value": "dark", "mode": "replace", "revision": "newest", "in_header": False}


class Machine(RuleBasedStateMachine):
    """The rules; `clock` and, for real HTTP, `wire` are given by whoever runs it."""

    clock: ClassVar[Clock]
    wire: ClassVar[httpx.Client | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.clock.restart()
        self.sides = [Side(self.clock, self.wire), Side(self.clock, self.wire)]
        #: Every revision and entry that either tenant ever had.
        self.seen: set[str] = set()

    @initialize(given=beginnings, until=deadlines)
    def begin(self, given: dict[str, int | None], until: dict[str, Any]) -> None:
        """Start where something is allowed and stored: from nothing, chance takes long to get there."""
        for purpose, seconds in given.items():
            body = self.timed({"decision": "given", "version": 1, "expires_at": seconds})
            self.decide_as(self.sides[0], WHO["alice"], "me", purpose, body)
        write = {**REPLACE, "mode": "upsert"}
        for key in ("tone", "banner", "limited", "note"):
            self.put(0, (WHO["alice"], "me"), key, write, {}, until)
        self.put(1, (WHO["alice"], "me"), "limited", write, {}, {})

    def check(self, side: Side, *about: str | None, is_ordered: bool = True) -> None:
        """The trails, then what the persons of this step are shown."""
        side.check_events(is_ordered=is_ordered)
        for other in self.sides:
            if other is not side:
                other.take_events(0)
        for person in sorted({one for one in about if one in ("alice", "bob")}):
            side.check_person(WHO[person])

    def learn(self, side: Side, address: tuple[str, str], revision: str) -> str:
        """Take a revision that the service chose: none that was ever seen, in no tenant."""
        assert len(revision) == 32
        assert set(revision) <= set("0123456789abcdef")
        assert revision not in self.seen
        self.seen.add(revision)
        side.revisions.setdefault(address, []).append(revision)
        return revision

    def pick(self, side: Side, address: tuple[str, str], whose: str) -> str:
        """A revision of this address or of another; 32 zeros where there is none of the kind."""
        here = side.revisions.get(address, [])
        if whose == "newest" and here:
            return here[-1]
        if whose == "older" and len(here) > 1:
            return here[-2]
        if whose == "foreign":
            for one in reversed(self.sides):
                for place, found in one.revisions.items():
                    if one is not side or place != address:
                        return found[-1]
        return "0" * 32

    def timed(self, until: Mapping[str, Any]) -> dict[str, Any]:
        """A drawn deadline as the moment that it means now."""
        if until.get("expires_at") is None:
            return dict(until)
        return {**until, "expires_at": self.clock.now + timedelta(seconds=until["expires_at"])}

    # Preferences -------------------------------------------------------------------------------

    def put(
        self, number: int, place: Place, key: str, write: dict[str, Any], more: dict[str, Any],
        until: dict[str, Any],
    ) -> None:  # fmt: skip
        side, (who, scope) = self.sides[number], place
        address, until = address_of(*place, key), self.timed(until)
        asked = {**write, **more, **until, "revision": self.pick(side, address, write["revision"])}
        headers, query = {}, {}
        body = {"value": write["value"], **spelled(until)}
        body |= {name: more[name] for name in ("tags", "metadata") if name in more}
        if "detail" in more:
            body["provenance"] = {"detail": more["detail"]}
        match write["mode"]:
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
        answer = side.send(who, "PUT", path_of(scope, key), body, query=query, headers=headers)
        fresh = None
        if answer.status in (200, 201):
            fresh = self.learn(side, address, answer.revision)
        model = side.model
        compare(answer, model.answer(who, lambda: model.put(who, scope, key, asked, fresh)))
        self.check(side, person_of(address[0]))

    # Rules are drawn evenly, and what builds a state up has to come by more often.
    _put = rule(number=sides, place=places, key=keys, write=writes, more=extras, until=deadlines)
    put_one, put_another, put_a_third = _put(put), _put(put), _put(put)

    @rule(number=sides, place=places, key=keys, method=weighted(GET=3, HEAD=1), is_known=st.booleans(), why=reasons)  # fmt: skip
    def get(
        self, number: int, place: Place, key: str, method: str, is_known: bool, why: str | None
    ) -> None:
        side, (who, scope) = self.sides[number], place
        known = self.pick(side, address_of(*place, key), "newest")
        headers = {"If-None-Match": f'"{known}"'} if is_known else {}
        answer = side.send(who, method, path_of(scope, key), query={"reason": why}, headers=headers)
        promised = side.model.answer(who, lambda: side.model.get(who, scope, key, why))
        if isinstance(promised, Refused):
            if method == "HEAD":
                promised = promised.status, None
        else:
            revision = promised[1]["revision"]
            assert answer.etag == revision
            if is_known and known == revision:
                promised = 304, None
            elif method == "HEAD":
                promised = 200, None
        compare(answer, promised)
        self.check(side)

    @rule(number=sides, place=places, key=keys, which=seldom(whose), is_in_header=st.booleans(), why=reasons)  # fmt: skip
    def delete(
        self, number: int, place: Place, key: str, which: str | None, is_in_header: bool,
        why: str | None,
    ) -> None:  # fmt: skip
        side, (who, scope), headers = self.sides[number], place, {}
        address, revision = address_of(*place, key), None
        query = {"reason": why}
        if which is not None:
            # What is unknown in a header may be whatever stands there.
            is_any = which == "unknown" and is_in_header
            revision = "*" if is_any else self.pick(side, address, which)
            if is_in_header:
                headers["If-Match"] = "*" if is_any else f'"{revision}"'
            else:
                query["revision"] = revision
        answer = side.send(who, "DELETE", path_of(scope, key), query=query, headers=headers)
        model = side.model
        compare(answer, model.answer(who, lambda: model.delete(who, scope, key, revision, why)))
        self.check(side, person_of(address[0]))

    @rule(number=sides, who=people, asked=operations, is_atomic=st.booleans(), why=reasons)
    def batch(
        self, number: int, who: Who, asked: list[dict[str, Any]], is_atomic: bool, why: str | None
    ) -> None:
        side = self.sides[number]
        # Without a person of its own, whoever asks means Alice: else every batch would fail.
        asked = [
            {**one, "scope": "user::alice"} if one["scope"] == "me" and not who.me else one
            for one in asked
        ]
        told = [self.as_told(side, who, one) for one in asked]
        answer = side.send(
            who, "POST", "preferences/batch", query={"reason": why},
            body={"operations": [as_sent(one) for one in told], "atomic": is_atomic},
        )  # fmt: skip
        fresh: list[str | None] = [None] * len(told)
        for index, result in enumerate(answer.json.get("results", [])):
            one = told[index]
            if one["op"] == "put" and result["status"] in (200, 201):
                address = address_of(who, one["scope"], one["key"])
                fresh[index] = self.learn(side, address, result["body"]["revision"])
        model = side.model
        promised = model.answer(who, lambda: model.batch(who, told, is_atomic, fresh, why))
        if isinstance(promised, Refused):
            compare(answer, promised)
            promised = promised.results
        else:
            assert answer.status == 200
        if promised is None:
            assert "results" not in answer.json
        else:
            compare_results(answer, promised)
        self.check(side, "alice", "bob", is_ordered=False)

    def as_told(self, side: Side, who: Who, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """One operation with the moment and the revision that were drawn for it."""
        until = self.timed(drawn["deadline"]) if drawn["op"] == "put" else {}
        address = address_of(who, drawn["scope"], drawn["key"])
        told = {name: drawn[name] for name in ("op", "scope", "key", "mode", "value")} | until
        if drawn["mode"] == "replace" and drawn["op"] != "get":
            told["revision"] = self.pick(side, address, drawn["revision"])
        return told

    @rule(
        number=sides, place=places, is_scope_given=st.booleans(),
        prefix=seldom(st.sampled_from(["t", "no"])), tag=seldom(st.sampled_from(["a", "b"])),
        purpose=seldom(st.sampled_from(["support", "service"])), why=reasons,
    )  # fmt: skip
    def look(
        self, number: int, place: Place, is_scope_given: bool, prefix: str | None,
        tag: str | None, purpose: str | None, why: str | None,
    ) -> None:  # fmt: skip
        side, (who, scope) = self.sides[number], place
        query = {
            "scope": scope if is_scope_given else None, "key_prefix": prefix, "tag": tag,
            "purpose": purpose, "reason": why,
        }  # fmt: skip
        answer = side.send(who, "GET", "preferences", query=query)
        compare(answer, side.model.answer(who, lambda: side.model.listed(who, **query)))
        self.check(side)

    @rule(number=sides, who=people, asked=st.lists(scopes, min_size=1, max_size=4))
    def resolve(self, number: int, who: Who, asked: list[str]) -> None:
        side = self.sides[number]
        answer = side.send(who, "GET", "preferences/effective", query={"scope": asked})
        compare(answer, side.model.answer(who, lambda: side.model.effective(who, asked)))
        self.check(side)

    # Consent -----------------------------------------------------------------------------------

    @rule(number=sides, place=deciders, purpose=weighted(support=3, ads=3, service=1, unheard=1), decision=decisions)  # fmt: skip
    def decide(self, number: int, place: Place, purpose: str, decision: dict[str, Any]) -> None:
        side, (who, person) = self.sides[number], place
        body = self.timed(decision)
        past = side.model.ledger[str(who.me) if person == "me" else person, purpose]
        if body["entry"] is not None:
            body["entry"] = past[-1 if body["entry"] == "newest" else 0]["entry"] if past else None
        self.decide_as(side, who, person, purpose, body)

    def decide_as(
        self, side: Side, who: Who, person: str, purpose: str, body: dict[str, Any]
    ) -> None:
        answer = side.send(who, "PUT", f"consents/{person}/{purpose}", spelled(body))
        fresh = answer.json.get("entry")
        if fresh in self.seen:
            fresh = None  # an older one, told again
        model = side.model
        compare(answer, model.answer(who, lambda: model.decide(who, person, purpose, body, fresh)))
        self.seen |= {fresh} if fresh else set()
        self.check(side, person, who.me)

    @rule(number=sides, place=concerned, purpose=purposes, what=weighted(data=1, states=1, past=1), why=reasons)  # fmt: skip
    def ask_about(
        self, number: int, place: Place, purpose: str, what: str, why: str | None
    ) -> None:
        side, (who, person) = self.sides[number], place
        model = side.model
        path, promise = {
            "data": (f"subjects/{person}/data", lambda: model.data(who, person, why)),
            "states": (f"consents/{person}", lambda: model.states(who, person, why)),
            "past": (
                f"consents/{person}/{purpose}/history",
                lambda: model.past(who, person, purpose, why),
            ),
        }[what]
        answer = side.send(who, "GET", path, query={"reason": why})
        # Who wrote and read it, and further stores, are checked elsewhere.
        compare(answer, model.answer(who, promise), is_whole=what != "data")
        self.check(side)

    @rule(number=sides, name=weighted(alice=3, bob=1), key=st.one_of(st.none(), keys))
    def restrict_or_lift(self, number: int, name: str, key: str | None) -> None:
        """A person restricts everything or one record; where it has, it lets go."""
        side, model = self.sides[number], self.sides[number].model
        before, one = model.restriction(name), (name, key)
        is_lifted = one in model.restricted
        path = "subjects/me/restriction" if key is None else f"subjects/me/restrictions/{key}"
        answer = side.send(WHO[name], *(("DELETE", path) if is_lifted else ("PUT", path, {})))
        assert answer.status == (204 if is_lifted else 200)
        model.restricted ^= {one}
        side.check_actions(
            f"restriction.{'lifted' if is_lifted else 'created'}",
            *(["subject.changed"] if model.restriction(name) != before else []),
            actor=name,
        )
        side.check_person(WHO[name])

    # What the tenant's owner does, and time ----------------------------------------------------

    @rule(number=sides, agent=weighted(agent=1, bound=1), purpose=weighted(support=2, ads=2, service=1))  # fmt: skip
    def grant_or_revoke(self, number: int, agent: str, purpose: str) -> None:
        """Give an agent a purpose that it lacks, or take away one that it serves."""
        side = self.sides[number]
        serves = side.model.serves[agent]
        change = {
            "tenant_id": side.tenant.pk, "user_id": side.world.personas[agent].user.pk,
            "slugs": [purpose], "actor": actors.SYSTEM,
        }  # fmt: skip
        if purpose in serves:
            revoke_purposes(**change)
        else:
            grant_purposes(**change)
        side.check_actions(f"purpose_grant.{'deleted' if purpose in serves else 'created'}")
        side.model.serves[agent] = serves ^ {purpose}

    @rule(number=sides, purpose=purposes, is_material=st.booleans())
    def publish(self, number: int, purpose: str, is_material: bool) -> None:
        """A new notice; a material one outdates what was given to those before it."""
        side, model = self.sides[number], self.sides[number].model
        version = max(model.notices[purpose]) + 1
        words = f"{purpose} {version}"
        with unit_of_work(tenant_id=side.tenant.pk, actor=actors.SYSTEM):
            publish_notice(
                purpose=get_purpose(tenant_id=side.tenant.pk, slug=purpose), version=version,
                locale="en", text=words, is_material=is_material, actor=actors.SYSTEM,
            )  # fmt: skip
        model.notices[purpose][version] = words
        if is_material:
            model.required[purpose] = version
            model.raised[purpose] = self.clock.now
        side.check_actions("notice.created", *(["purpose.changed"] if is_material else []))
        side.check_person(WHO["alice"])

    @rule(number=sides, is_decided=st.booleans())
    def repurpose(self, number: int, is_decided: bool) -> None:
        """
        From now on `tone` serves the other purpose; what is stored keeps its own.

        Perhaps Alice goes along: she takes back the one and consents to the other.
        """
        side = self.sides[number]
        old = side.model.rules["user"]["tone"].purpose
        (other,) = set(ON_CONSENT) - {old}
        if is_decided:
            given = {"decision": "given", "version": max(side.model.notices[other])}
            self.decide_as(side, WHO["alice"], "me", str(old), {"decision": "withdrawn"})
            self.decide_as(side, WHO["alice"], "me", other, given)
        definitions = copy.deepcopy(CATALOG["definitions"])
        next(one for one in definitions if one["key"] == "tone")["purpose"] = other
        change_catalog(side.tenant, definitions=definitions, undeclared=UNDECLARED)
        side.model.rules["user"]["tone"] = Rule(other)
        side.check_actions("definition.changed")
        # Both purposes are asked for what is stored now: by whoever serves or consented to one.
        for name, scope in (("alice", "me"), ("agent", "user::alice"), ("bound", "me")):
            self.put(number, (WHO[name], scope), "tone", REPLACE, {}, {})

    @rule(number=sides)
    def purge(self, number: int) -> None:
        """Housekeeping takes what is past its deadline, and nothing else."""
        side = self.sides[number]
        purge_expired(tenant_id=side.tenant.pk, actor=actors.SYSTEM)
        side.model.answer(SYSTEM, lambda: side.model.purge(SYSTEM))
        self.check(side, "alice", is_ordered=False)

    @rule(seconds=st.sampled_from([0.000001, 1, 30, 60, 3600]))
    def wait(self, seconds: float) -> None:
        self.move_to(self.clock.now + timedelta(seconds=seconds))

    @rule(is_written=st.booleans())
    def wait_for_a_deadline(self, is_written: bool) -> None:
        """
        To the microsecond before the next deadline, then to the very moment.

        At both, every record is asked for at its address, and at the moment perhaps replaced: no
        other rule is sure to come by before time goes on.
        """
        ahead = [one for side in self.sides for one in deadlines_of(side.model)]
        ahead = [one for one in ahead if one > self.clock.now]
        if not ahead:
            return
        for moment in (min(ahead) - timedelta(microseconds=1), min(ahead)):
            self.move_to(moment)
            for number, side in enumerate(self.sides):
                for scope, key in list(side.model.rows):
                    place = WHO.get(person_of(scope) or "operator", WHO["operator"]), scope
                    self.get(number, place, key, "GET", False, "asked by mail")
                    if is_written and moment == min(ahead):
                        self.put(number, place, key, REPLACE, {}, {})

    def move_to(self, moment: datetime) -> None:
        self.clock.set(moment)
        for name in ("alice", "bob"):
            self.sides[0].check_person(WHO[name])

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:
            return  # a step failed: what it found matters, not what followed from it
        for side in self.sides:
            for name in ("alice", "bob"):
                side.check_person(WHO[name])
            prove(side.tenant)


def address_of(who: Who, scope: str, key: str) -> tuple[str, str]:
    return f"user::{who.me}" if scope == "me" else scope, key


def path_of(scope: str, key: str) -> str:
    return f"preferences/{quote(scope, safe=':')}/{key}"


def as_sent(told: Mapping[str, Any]) -> dict[str, Any]:
    """One operation of a batch as the service takes it."""
    known = {"op", "scope", "key", "revision"}
    if told["op"] == "put":
        known |= {"value", "ttl_seconds", "expires_at"}
        known |= {"mode"} if told["mode"] == "upsert" else set()
    return spelled({name: one for name, one in told.items() if name in known})


def deadlines_of(model: Model) -> list[datetime]:
    rows = [row["expires_at"] for row in model.rows.values()]
    entries = [entry["expires_at"] for past in model.ledger.values() for entry in past[-1:]]
    return [moment for moment in (*rows, *entries) if moment is not None]

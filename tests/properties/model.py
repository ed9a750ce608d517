"""
What the service promises of one tenant, as plain dictionaries and early returns.

Knows nothing of how the service does it and imports none of its code. What only the service can
choose (a revision, an entry's id) is handed in as `fresh`; everything else is said here first.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

MICROSECOND = timedelta(microseconds=1)
ON_CONSENT = ("support", "ads")
ANYBODY = frozenset({"subject", "operator", "agent"})
TYPES = {str: "string", int: "number", bool: "boolean", list: "list", dict: "object"}

#: Codes of the gate, the one that is told first at the front.
GRAVITY = ("purpose_not_allowed", "consent_required", "restricted")

#: What marks a member that an answer does not have.
NOTHING = object()


@dataclass(frozen=True)
class Who:
    """One caller: its role, the person it stands for, and whether that is another's mandate."""

    name: str
    role: str
    me: str | None = None
    behalf: str | None = None

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Rule:
    """What governs a key at one kind of scope."""

    purpose: str | None = None
    writers: frozenset[str] = ANYBODY
    default_ttl: int | None = None
    most_ttl: int | None = None
    values: Sequence[Any] | None = None


class Refused(Exception):
    """The promised refusal: status, code, the facts beside it, and what its denied event names."""

    def __init__(
        self, status: int, code: str, *, about: Sequence[str | None] = (None, None, None),
        purpose: str | None = None, current: Any = NOTHING, reason: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(status, code)
        #: Of a failed atomic batch, every operation's.
        self.results: Sequence[Any] | None = None
        self.status, self.code, self.about = status, code, tuple(about)
        self.purpose, self.current, self.reason = purpose, current, reason


def text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def person_of(scope: str) -> str | None:
    return scope.removeprefix("user::") if scope.startswith("user::") else None


class Model:
    """One tenant. Every method answers one request, or raises what it is refused with."""

    def __init__(
        self, clock: Any, rules: Mapping[str, Mapping[str, Rule]], notices: Mapping[str, str]
    ) -> None:
        self.clock = clock
        #: By kind of scope and key; under "", what governs keys that nothing declares there.
        self.rules = {kind: dict(keys) for kind, keys in rules.items()}
        self.defaults = {"theme": "light"}
        self.notices = {purpose: {1: notices[purpose]} for purpose in ON_CONSENT}
        self.required = dict.fromkeys(ON_CONSENT, 1)
        #: When the newest material notice came.
        self.raised: dict[str, datetime] = {}
        self.ledger: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self.serves = {name: {"support", "service"} for name in ("agent", "bound")}
        #: By address, in the order of creation; a row past its deadline stays until it is purged.
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        #: Person and key; None for everything.
        self.restricted: set[tuple[str, str | None]] = set()
        self.known = {"alice", "bob"}
        #: What the last request must have left in the trail.
        self.events: list[dict[str, Any]] = []

    @property
    def now(self) -> datetime:
        moment: datetime = self.clock.now
        return moment

    # What decides ------------------------------------------------------------------------------

    def rule(self, scope: str, key: str) -> Rule | None:
        keys = self.rules[scope.partition("::")[0]]
        return keys.get(key, keys.get(""))

    def status(self, person: str, purpose: str) -> str:
        if not self.ledger[person, purpose]:
            return "none"
        last = self.ledger[person, purpose][-1]
        if last["decision"] != "given":
            return str(last["decision"])
        if last["expires_at"] is not None and last["expires_at"] <= self.now:
            return "expired"
        return "outdated" if last["version"] < self.required[purpose] else "given"

    def gate(self, who: Who, scope: str, purpose: str | None, key: str | None = None) -> str | None:
        """The code that keeps `who` from a person's data of one purpose; None where it is open."""
        person = person_of(scope)
        if person is None:
            return None
        if who.role == "agent" and purpose not in self.serves[who.name]:
            return "purpose_not_allowed"
        if purpose in ON_CONSENT and self.status(person, purpose) != "given":
            return "consent_required"
        if purpose is not None and self.restricted & {(person, None), (person, key)}:
            return "restricted"
        return None

    def pass_gate(
        self, who: Who, scope: str, key: str, *purposes: str | None, reason: str | None
    ) -> None:
        """Where several purposes are asked, the graver refusal is the answer, else the first."""
        found = [
            (GRAVITY.index(code), number, code, purpose)
            for number, purpose in enumerate(purposes)
            if (code := self.gate(who, scope, purpose, key)) is not None
        ]
        if found:
            *_, code, purpose = min(found)
            raise Refused(
                403, code, about=(person_of(scope), scope, key), purpose=purpose, reason=reason
            )

    def restriction(self, person: str) -> str | None:
        """What the restrictions of a person come to."""
        keys = {key for one, key in self.restricted if one == person}
        return "all" if None in keys else "keys" if keys else None

    def live(self, address: tuple[str, str]) -> dict[str, Any] | None:
        row = self.rows.get(address)
        if row is None or (row["expires_at"] is not None and row["expires_at"] <= self.now):
            return None
        return row

    def scope_for(self, who: Who, scope: str) -> str:
        if scope != "me":
            return scope
        if who.me is None:
            raise Refused(403, "permission_denied")
        return f"user::{who.me}"

    def reach(self, who: Who, person: str | None, about: Sequence[str | None]) -> None:
        if person in (None, who.me) or who.role == "operator":
            return
        if who.role == "agent" and who.behalf is None:
            return
        raise Refused(403, "permission_denied", about=about)

    def needs_reason(self, who: Who, person: str | None) -> bool:
        return person is not None and who.role == "operator"

    def check_reason(self, who: Who, person: str | None, reason: str | None) -> str | None:
        """The reason where it counts: nobody else discloses anything."""
        if not self.needs_reason(who, person):
            return None
        if reason is None:
            raise Refused(400, "validation_error")
        return reason

    # Preferences -------------------------------------------------------------------------------

    def at(self, who: Who, scope: str, key: str) -> tuple[str, str | None]:
        """The canonical scope and its person, if role and reach let `who` work there."""
        scope = self.scope_for(who, scope)
        if who.role == "auditor":
            raise Refused(403, "permission_denied")
        self.reach(who, person_of(scope), (person_of(scope), scope, key))
        return scope, person_of(scope)

    def get(
        self, who: Who, scope: str, key: str, reason: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        scope, person = self.at(who, scope, key)
        reason = self.check_reason(who, person, reason)
        row, rule = self.live((scope, key)), self.rule(scope, key)
        governing = row["purpose"] if row else rule.purpose if rule else None
        if governing is not None:
            self.pass_gate(who, scope, key, governing, reason=reason)
        if row is None:
            raise Refused(404, "not_found")
        if reason is not None:
            self.note(who, "data.disclosed", person, scope, key, row["purpose"], reason=reason)
        return 200, self.shown((scope, key))

    def put(
        self, who: Who, scope: str, key: str, write: Mapping[str, Any], fresh: str | None,
        reason: str | None = None,
    ) -> tuple[int, dict[str, Any]]:  # fmt: skip
        scope, person = self.at(who, scope, key)
        address, about = (scope, key), (person, scope, key)
        if write.get("expires_at") is not None and write.get("ttl_seconds") is not None:
            raise Refused(400, "invalid_ttl")
        rule = self.rule(scope, key)
        if rule is None:
            raise Refused(400, "undeclared_key")
        as_whom = self.writer(who)
        is_declared = key in self.rules[scope.partition("::")[0]]
        if as_whom not in rule.writers or (
            not is_declared and person is None and as_whom == "subject"
        ):
            raise Refused(403, "permission_denied", about=about, reason=reason)
        row = self.live(address)
        asked = [rule.purpose, *([row["purpose"]] if row is not None else [])]
        self.pass_gate(who, scope, key, *asked, reason=reason)
        if rule.values is not None and write["value"] not in rule.values:
            raise Refused(400, "invalid_value")
        deadline = self.deadline(rule, write)
        mode = write["mode"]
        if row is None and mode in ("replace", "any"):
            raise Refused(409, "stale_revision", current=None)
        if row is not None and mode in ("create", "if_none_match"):
            status = 412 if mode == "if_none_match" else 409
            raise Refused(status, "already_exists", current=current(row))
        if row is not None and mode == "replace" and write["revision"] != row["revision"]:
            raise Refused(409, "stale_revision", current=current(row))
        is_own = person is not None and person == who.me
        source = "agent" if as_whom == "agent" else "user_confirmed" if is_own else "operator"
        change = {
            "value": write["value"], "purpose": rule.purpose, "actor": who.name,
            "source": source, "detail": write.get("detail"), "revision": fresh,
        }  # fmt: skip
        change |= {name: write[name] for name in ("tags", "metadata") if name in write}
        if row is not None:
            before = row["revision"]
            if "ttl_seconds" in write or "expires_at" in write:
                change["expires_at"] = deadline
            moment = max(self.now, row["updated_at"] + MICROSECOND)
            row.update(change, seen_count=row["seen_count"] + 1, updated_at=moment)
            self.note(who, "preference.replaced", *about, rule.purpose, before, fresh, reason)
            return 200, self.shown(address)
        self.remove(who, address, reason)
        if person is not None:
            self.meet(who, person, reason)
        self.rows[address] = {
            "tags": [], "metadata": {}, "expires_at": deadline, **change, "seen_count": 1,
            "created_at": self.now, "updated_at": self.now,
        }  # fmt: skip
        self.note(who, "preference.created", *about, rule.purpose, None, fresh, reason)
        return 201, self.shown(address)

    def delete(
        self, who: Who, scope: str, key: str, revision: str | None, reason: str | None
    ) -> tuple[int, None]:
        _, person = self.at(who, scope, key)
        return self.forget(who, scope, key, revision, self.check_reason(who, person, reason))

    def forget(
        self, who: Who, scope: str, key: str, revision: str | None, reason: str | None
    ) -> tuple[int, None]:
        """Delete, the reason being settled: that of a batch stands in all of its events."""
        scope, person = self.at(who, scope, key)
        about = (person, scope, key)
        row, rule = self.rows.get((scope, key)), self.rule(scope, key)
        governing = row["purpose"] if row else rule.purpose if rule else None
        if self.gate(who, scope, governing) == "purpose_not_allowed":
            raise Refused(403, "purpose_not_allowed", about=about, purpose=governing)
        if person is None and self.writer(who) == "subject":
            is_declared = key in self.rules[scope.partition("::")[0]]
            if not is_declared or (rule and "subject" not in rule.writers):
                raise Refused(403, "permission_denied", about=about)
        live = self.live((scope, key))
        if revision is not None and live is None:
            raise Refused(409, "stale_revision", current=None)
        if revision is not None and live and revision not in ("*", live["revision"]):
            raise Refused(409, "stale_revision", current=current(live))
        if row is None:
            raise Refused(404, "not_found")
        self.remove(who, (scope, key), reason)
        return 204, None

    def writer(self, who: Who) -> str:
        return who.role if who.role in ("agent", "operator") else "subject"

    def deadline(self, rule: Rule, write: Mapping[str, Any]) -> datetime | None:
        """What a write asks for, within the bounds of its key; else what the key has by default."""
        latest = self.after(rule.most_ttl)
        if "ttl_seconds" not in write and "expires_at" not in write:
            return latest if rule.default_ttl is None else self.after(rule.default_ttl)
        asked: datetime | None = write.get("expires_at") or self.after(write.get("ttl_seconds"))
        if asked is None and latest is not None:
            raise Refused(400, "invalid_ttl")
        if asked is not None and (asked <= self.now or (latest and asked > latest)):
            raise Refused(400, "invalid_ttl")
        return asked

    def after(self, seconds: int | None) -> datetime | None:
        return None if seconds is None else self.now + timedelta(seconds=seconds)

    def remove(self, who: Who, address: tuple[str, str], reason: str | None = None) -> None:
        """Take a row away, if there is one; what is past its deadline has expired."""
        if address not in self.rows:
            return
        verb = "deleted" if self.live(address) else "expired"
        row = self.rows.pop(address)
        about = (person_of(address[0]), *address)
        self.note(who, f"preference.{verb}", *about, row["purpose"], row["revision"], None, reason)

    def purge(self, system: Who) -> None:
        for address in [one for one in self.rows if self.live(one) is None]:
            self.remove(system, address)

    def batch(
        self, who: Who, operations: Sequence[dict[str, Any]], is_atomic: bool,
        fresh: Sequence[str | None], reason: str | None,
    ) -> list[Any]:  # fmt: skip
        """The result of every operation; a failed atomic batch is refused with them."""
        if who.role == "auditor":
            raise Refused(403, "permission_denied")
        places = [self.place(who, one) for one in operations]
        named = [place for place in places if place[0]]
        if len(set(named)) < len(named):
            raise Refused(400, "duplicate_address")
        before = deepcopy((self.rows, self.known))
        results: list[Any] = [None] * len(operations)
        denials: list[Refused] = []
        for index in sorted(range(len(operations)), key=lambda index: places[index]):
            try:
                results[index] = self.operate(who, operations[index], fresh[index], reason)
            except Refused as refusal:
                refusal.reason = reason
                results[index] = refusal
                denials += [refusal] if refusal.status == 403 else []
        refusals = [
            one for one, asked in zip(results, operations, strict=True)
            if isinstance(one, Refused) and (asked["op"], one.status) != ("get", 404)
        ]  # fmt: skip
        if is_atomic and refusals:
            (self.rows, self.known), self.events = before, []
            refusals[0].results = [
                one if one in refusals else Refused(424, "failed_dependency") for one in results
            ]
            raise refusals[0]
        for refusal in denials:
            self.deny(who, refusal)
        return results

    def place(self, who: Who, operation: Mapping[str, Any]) -> tuple[str, str]:
        scope = operation["scope"]
        if scope == "me":
            scope = f"user::{who.me}" if who.me else ""
        return (scope, operation["key"]) if scope else ("", "")

    def operate(
        self, who: Who, operation: dict[str, Any], fresh: str | None, reason: str | None
    ) -> Any:
        scope, key = operation["scope"], operation["key"]
        if operation["op"] == "put":
            return self.put(who, scope, key, operation, fresh, reason)
        person = person_of(self.scope_for(who, scope))
        if self.needs_reason(who, person) and reason is None:
            raise Refused(400, "validation_error")
        if operation["op"] == "get":
            return self.get(who, scope, key, reason)
        return self.forget(who, scope, key, operation.get("revision"), reason)

    # Reads over many records -------------------------------------------------------------------

    def listed(
        self, who: Who, scope: str | None = None, key_prefix: str | None = None, tag: str | None = None,
        purpose: str | None = None, reason: str | None = None,
    ) -> tuple[int, dict[str, Any]]:  # fmt: skip
        if scope is not None:
            scope = self.scope_for(who, scope) if who.role != "auditor" else scope
        if who.role == "auditor":
            raise Refused(403, "permission_denied")
        person = None if scope is None else person_of(scope)
        self.reach(who, person, (person, None, None))
        reason = self.check_reason(who, person, reason)
        if scope is None and who.role == "agent" and who.behalf is None:
            raise Refused(400, "invalid_scope")
        if scope is None:
            scopes = {one for one, _ in self.rows if person_of(one) in (None, who.me)}
        else:
            scopes = {scope}
        matching = [
            (address, row) for address in self.rows
            if (row := self.live(address)) is not None and address[0] in scopes
            and address[1].startswith(key_prefix or "") and (tag is None or tag in row["tags"])
            and purpose in (None, row["purpose"])
        ]  # fmt: skip
        if reason is not None:
            self.note(who, "data.disclosed", person, scope, None, purpose, reason=reason)
        shut = {(row["purpose"], code) for address, row in matching
                if (code := self.gate(who, address[0], row["purpose"], address[1]))}  # fmt: skip
        return 200, {
            "results": [
                self.shown(address) for address, row in matching
                if not self.gate(who, address[0], row["purpose"], address[1])
            ],
            "next": None, "previous": None,
            "withheld": [{"purpose": one, "reason": code} for one, code in sorted(shut)],
        }  # fmt: skip

    def effective(self, who: Who, scopes: Sequence[str]) -> tuple[int, dict[str, Any]]:
        if who.role == "auditor":
            raise Refused(403, "permission_denied")
        asked = list(dict.fromkeys(self.scope_for(who, scope) for scope in scopes))
        readable = [
            scope for scope in asked
            if person_of(scope) in (None, who.me) or (who.role == "agent" and not who.behalf)
        ]  # fmt: skip
        stored: dict[str, list[str]] = defaultdict(list)
        shut = set()
        for scope in readable:
            for address in self.rows:
                row = self.live(address)
                if row is None or address[0] != scope:
                    continue
                code = self.gate(who, scope, row["purpose"], address[1])
                if code is None:
                    stored[address[1]].append(scope)
                else:
                    shut.add((row["purpose"], code))
        results = []
        for key in sorted({*stored, *self.defaults}):
            holders = stored.get(key, [])
            row = self.rows[holders[0], key] if holders else None
            results.append({
                "key": key, "value": row["value"] if row else self.defaults[key],
                "scope": holders[0] if row else None,
                "revision": row["revision"] if row else None,
                "origin": "stored" if row else "default", "shadows": holders[1:],
            })  # fmt: skip
        return 200, {
            "results": results,
            "next": None,
            "previous": None,
            "withheld": [{"purpose": one, "reason": code} for one, code in sorted(shut)],
        }

    def data(self, who: Who, person: str, reason: str | None = None) -> tuple[int, dict[str, Any]]:
        person = self.person(who, person)
        if who.role in ("agent", "auditor"):
            raise Refused(403, "permission_denied")
        self.reach(who, person, (person, None, None))
        reason = self.check_reason(who, person, reason)
        if reason is not None:
            self.note(who, "data.disclosed", person, None, None, None, reason=reason)
        records = []
        for address in self.rows:
            if self.live(address) and person_of(address[0]) == person:
                until = text(self.rows[address]["expires_at"])
                rule = "deadline" if until else "until_deleted"
                retention = {"until": until, "rule": rule}
                records.append({**self.shown(address), "retention": retention})
        consents = [
            {**self.state(person, purpose), "history": self.history(person, purpose)}
            for purpose in ON_CONSENT
        ]
        return 200, {"subject": person, "preferences": records, "consents": consents}

    def shown(self, address: tuple[str, str]) -> dict[str, Any]:
        row = self.rows[address]
        return {
            "scope": address[0], "key": address[1], "value": row["value"],
            "type": TYPES.get(type(row["value"]), "null"), "revision": row["revision"],
            "purpose": row["purpose"],
            "provenance": {
                "source": row["source"], "actor": row["actor"], "detail": row["detail"],
                "origin": {}, "confidence": None,
            },
            "tags": row["tags"], "metadata": row["metadata"], "seen_count": row["seen_count"],
            "created_at": text(row["created_at"]), "updated_at": text(row["updated_at"]),
            "expires_at": text(row["expires_at"]),
        }  # fmt: skip

    # Consent -----------------------------------------------------------------------------------

    def person(self, who: Who, person: str) -> str:
        return str(person_of(self.scope_for(who, "me" if person == "me" else f"user::{person}")))

    def decide(
        self, who: Who, person: str, purpose: str, body: Mapping[str, Any], fresh: str | None
    ) -> tuple[int, dict[str, Any]]:
        person = self.person(who, person)
        if who.role in ("agent", "auditor"):
            raise Refused(403, "permission_denied")
        self.reach(who, person, (person, None, None))
        decision, version = body["decision"], body.get("version")
        if person != who.me and not body.get("evidence"):
            raise Refused(400, "validation_error")
        if decision == "given" and version is None:
            raise Refused(400, "validation_error")
        if purpose == "unheard":
            raise Refused(404, "not_found")
        if purpose not in ON_CONSENT:
            raise Refused(400, "validation_error")
        past, before = self.ledger[person, purpose], self.state(person, purpose)
        until = body.get("expires_at")
        if decision == "given" and version not in self.notices[purpose]:
            raise Refused(400, "validation_error")
        if decision == "given" and until is not None and until <= self.now:
            raise Refused(400, "validation_error")
        if body.get("entry") is not None and body["entry"] != before["entry"]:
            known = {"version": before["version"], "entry": before["entry"]}
            raise Refused(409, "stale_revision", current=known)
        if decision == "given" and version < self.required[purpose]:
            known = {"version": max(self.notices[purpose]), "entry": before["entry"]}
            raise Refused(409, "stale_revision", current=known)
        if decision != "given":
            if before["status"] in ("refused", "withdrawn"):
                return 200, before
            decision = "refused" if before["status"] == "none" else "withdrawn"
            version = until = None
        self.meet(who, person, None)
        digest = hashlib.sha256(self.notices[purpose][version].encode()) if version else None
        past.append({
            "entry": fresh, "decision": decision, "version": version,
            "locale": "en" if version else None, "notice_digest": digest and digest.hexdigest(),
            "actor": who.name, "method": "user_confirmed" if person == who.me else "operator",
            "at": self.now, "expires_at": until,
        })  # fmt: skip
        self.note(who, f"consent.{decision}", person, None, None, purpose)
        return 200, self.state(person, purpose)

    def state(self, person: str, purpose: str) -> dict[str, Any]:
        past = self.ledger[person, purpose]
        last = past[-1] if past else {}
        return {
            "purpose": purpose, "status": self.status(person, purpose),
            "version": last.get("version"), "since": text(last.get("at")),
            "expires_at": text(last.get("expires_at")), "entry": last.get("entry"),
        }  # fmt: skip

    def states(
        self, who: Who, person: str, reason: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        person = self.person(who, person)
        if who.role != "auditor":
            self.reach(who, person, (person, None, None))
        reason = self.check_reason(who, person, reason)
        if reason is not None:
            self.note(who, "data.disclosed", person, None, None, None, reason=reason)
        seen = [one for one in ON_CONSENT if who.role != "agent" or one in self.serves[who.name]]
        return 200, envelope(self.state(person, purpose) for purpose in seen)

    def past(
        self, who: Who, person: str, purpose: str, reason: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        person = self.person(who, person)
        if who.role == "agent":
            raise Refused(403, "permission_denied")
        if who.role != "auditor":
            self.reach(who, person, (person, None, None))
        reason = self.check_reason(who, person, reason)
        if reason is not None:
            self.note(who, "data.disclosed", person, None, None, None, reason=reason)
        ends = self.ends(person, purpose)
        return 200, envelope(
            [
                {**entry, "ended_at": text(at), "ended_by": what}
                for entry, (at, what) in zip(self.history(person, purpose), ends, strict=True)
            ]
        )

    def ends(self, person: str, purpose: str) -> list[tuple[datetime | None, str | None]]:
        """When each decision ended and by what: the next one, its deadline, a material notice."""
        entries = self.ledger[person, purpose]
        found: list[tuple[datetime | None, str | None]] = []
        for number, entry in enumerate(entries):
            later = [(one["at"], one["decision"]) for one in entries[number + 1 : number + 2]]
            if entry["decision"] == "given":
                if entry["expires_at"] is not None and entry["expires_at"] <= self.now:
                    later.append((entry["expires_at"], "expired"))
                if entry["version"] < self.required[purpose]:
                    later.append((max(self.raised[purpose], entry["at"]), "outdated"))
            found.append(min(later, key=lambda end: end[0]) if later else (None, None))
        return found

    def history(self, person: str, purpose: str) -> list[dict[str, Any]]:
        return [
            {**entry, "at": text(entry["at"]), "expires_at": text(entry["expires_at"])}
            for entry in self.ledger[person, purpose]
        ]

    # The trail ---------------------------------------------------------------------------------

    def meet(self, who: Who, person: str, reason: str | None) -> None:
        """A person comes into being with the first thing that is kept about it."""
        if person not in self.known:
            self.known.add(person)
            self.note(who, "subject.created", person, None, None, None, reason=reason)

    def deny(self, who: Who, refusal: Refused) -> None:
        self.note(
            who, "access.denied", *refusal.about, refusal.purpose,
            reason=refusal.reason, outcome="denied",
        )  # fmt: skip

    def note(
        self, who: Who, action: str, subject: str | None, scope: str | None, key: str | None,
        purpose: str | None, before: str | None = None, after: str | None = None,
        reason: str | None = None, outcome: str = "done",
    ) -> None:  # fmt: skip
        self.events.append({
            "action": action, "outcome": outcome, "actor": who.name, "on_behalf_of": who.behalf,
            "subject": subject, "target": {"scope": scope, "key": key}, "purpose": purpose,
            "revision_before": before, "revision_after": after, "reason": reason,
        })  # fmt: skip

    def answer(self, who: Who, ask: Callable[[], Any]) -> Any:
        """What `ask` returns, or the refusal; a 403 leaves one denied event and nothing else."""
        self.events = []
        try:
            return ask()
        except Refused as refusal:
            if refusal.status == 403:
                self.deny(who, refusal)
            return refusal


def current(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "revision": row["revision"],
        "updated_at": text(row["updated_at"]),
        "expires_at": text(row["expires_at"]),
    }


def envelope(results: Iterable[Any]) -> dict[str, Any]:
    return {"results": list(results), "next": None, "previous": None}

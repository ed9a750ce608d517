"""Purposes, consent states and decisions over HTTP."""

import json
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from audit.services import record_event
from consent import openapi
from consent.histories import ends_of
from consent.models import ConsentEntry, Decision, Purpose
from consent.selectors import (
    get_purpose,
    list_history,
    list_purposes,
    list_served_purposes,
    list_states,
)
from consent.services import decide
from tenants.callers import Caller, check_reach
from tenants.exceptions import PermissionDenied, ValidationError
from tenants.guardians import act_for, list_wards
from tenants.pages import envelope
from tenants.roles import ANYONE, Role
from tenants.times import format_time, parse_time
from tenants.units import database, unit_of_work
from tenants.views import TenantAPIView, answer, given_reason

DECIDERS = frozenset({Role.MEMBER, Role.OPERATOR, Role.OWNER})


class WhoAmIView(TenantAPIView):
    """Who the caller is in this tenant."""

    roles = {"GET": ANYONE}
    operations = {"GET": openapi.WHOAMI}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        self.read_parameters()
        caller = self.caller
        purposes = []
        if caller.is_agent:
            with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
                purposes = list(list_served_purposes(caller=caller))
        return answer(
            {
                "tenant": caller.tenant,
                "user": caller.username,
                "subject": caller.subject,
                "roles": sorted(caller.roles),
                "purposes": purposes,
                "wards": list(list_wards(caller)),
            }
        )


class PurposesView(TenantAPIView):
    """The purposes in force and every notice that was published for them."""

    roles = {"GET": ANYONE}
    operations = {"GET": openapi.PURPOSES}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        self.read_parameters()
        with unit_of_work(tenant_id=self.caller.tenant_id, actor=self.caller.actor):
            purposes = [_purpose(one) for one in list_purposes(tenant_id=self.caller.tenant_id)]
        return answer(envelope(purposes))


class SubjectView(TenantAPIView):
    """Base of what is about one person, named in the path."""

    is_personal = True

    subject: str

    def read_path(self, **kwargs: Any) -> None:
        self.subject = self.caller.resolve_subject(kwargs["subject"])
        self.caller = act_for(self.caller, self.subject)

    def check_access(self, request: Request) -> None:
        if not self.is_watched:
            check_reach(self.caller, self.subject)

    @property
    def is_watched(self) -> bool:
        """Whether an auditor reads the ledger; an agent's credential stays an agent's."""
        return Role.AUDITOR in self.caller.roles and not self.caller.is_agent

    def read_disclosure(self) -> Caller:
        """Return the caller with a steward's reason; an auditor reads the ledger without one."""
        parameters = self.read_parameters()
        if self.is_watched:
            given_reason(parameters)  # needs none, but a malformed one is one
            return self.caller
        return self.read_reason(parameters, self.subject)

    def record_disclosure(self, caller: Caller) -> None:
        """Leave an event where a steward read another person's data with a reason, or a guardian did."""
        if caller.reason is not None or caller.is_guardian:
            record_event(
                "data.disclosed", tenant_id=caller.tenant_id, actor=caller.actor,
                subject=self.subject, using=database(),
            )  # fmt: skip


class OwnView(SubjectView):
    """Base of what the person alone does, or a guardian or an operator for them; no agent."""

    def check_access(self, request: Request) -> None:
        caller = self.caller
        if caller.is_agent or not (caller.stands_for(self.subject) or caller.is_steward):
            raise PermissionDenied(
                "Only the person, or an operator with evidence, decides this.",
                about={"subject": self.subject},
            )


class ConsentsView(SubjectView):
    """A person's state for every purpose that rests on consent."""

    roles = {"GET": ANYONE}
    operations = {"GET": openapi.STATES}
    parameters = {"GET": {"reason": False}}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_disclosure()
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            slugs = list_served_purposes(caller=caller) if caller.is_agent else None
            states = list_states(tenant_id=caller.tenant_id, subject=self.subject, slugs=slugs)
            self.record_disclosure(caller)
        return answer(envelope([state.as_json() for state in states]))


class ConsentView(OwnView):
    """One decision of one person on one purpose."""

    roles = {"PUT": DECIDERS}
    operations = {"PUT": openapi.DECIDE}

    def put(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        self.read_parameters()
        body = self.read_body(("decision", "version", "locale", "expires_at", "evidence", "entry"))
        state, is_replayed = decide(
            caller=self.caller,
            subject=self.subject,
            purpose=purpose,
            decision=_decision(body.get("decision")),
            version=_version(body.get("version")),
            locale=read_text(body, "locale", 35),
            expires_at=read_deadline(body.get("expires_at")),
            evidence=read_text(body, "evidence", 2048),
            entry=read_text(body, "entry", 64),
            once=self.read_idempotency_key(),
        )
        headers = {"Idempotency-Replayed": "true"} if is_replayed else {}
        if state.pending is None:
            return answer(state.as_json(), headers=headers)
        confirmation = {
            "expires_at": format_time(state.pending.expires_at),
            "token": state.pending.token,
        }
        return answer(
            {**state.as_json(), "confirmation": confirmation}, status=202, headers=headers
        )


class ConsentHistoryView(SubjectView):
    """Every decision of one person on one purpose, oldest first."""

    roles = {"GET": ANYONE - {Role.AGENT}}
    operations = {"GET": openapi.HISTORY}
    parameters = {"GET": {"reason": False}}

    def check_access(self, request: Request) -> None:
        if self.caller.is_agent:
            raise PermissionDenied(about={"subject": self.subject})
        super().check_access(request)

    def get(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        caller = self.read_disclosure()
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            found = get_purpose(tenant_id=caller.tenant_id, slug=purpose)
            entries = list(
                list_history(tenant_id=caller.tenant_id, subject=self.subject, purpose=found)
            )
            ends = ends_of(found, entries)
            self.record_disclosure(caller)
        return answer(
            envelope(
                [
                    {**entry_as_json(entry), "ended_at": at and format_time(at), "ended_by": what}
                    for entry, (at, what) in zip(entries, ends, strict=True)
                ]
            )
        )


def history_as_json(tenant_id: int, subject: str, purpose: Purpose) -> list[dict[str, Any]]:
    """Return a person's decisions on one purpose as the contract shows them. Inside a unit."""
    return [
        entry_as_json(entry)
        for entry in list_history(tenant_id=tenant_id, subject=subject, purpose=purpose)
    ]


def entry_as_json(entry: ConsentEntry) -> dict[str, Any]:
    """Return one decision as the contract shows it."""
    return {
        "entry": entry.entry,
        "decision": entry.decision,
        "version": entry.version,
        "locale": entry.locale,
        "notice_digest": entry.notice_digest,
        "actor": entry.actor,
        "method": entry.method,
        "at": format_time(entry.at),
        "expires_at": entry.expires_at and format_time(entry.expires_at),
    }


def _purpose(purpose: Purpose) -> dict[str, Any]:
    notices = sorted(purpose.notices.all(), key=lambda notice: (notice.version, notice.pk))
    return {
        "slug": purpose.slug,
        "title": purpose.title,
        "lawful_basis": purpose.lawful_basis,
        "version": max((notice.version for notice in notices), default=None),
        "required_version": purpose.required_version,
        "notices": [
            {
                "version": notice.version,
                "locale": notice.locale,
                "text": notice.text,
                "digest": notice.digest,
            }
            for notice in notices
        ],
        "on_withdrawal": purpose.on_withdrawal,
        "sharing": bool(purpose.is_sharing),
        "double_opt_in": bool(purpose.is_confirmed),
    }


def _decision(value: Any) -> Decision:
    if not isinstance(value, str) or value not in Decision.values:
        raise ValidationError(
            f"A decision is one of {json.dumps(Decision.values)}.", pointer="/decision"
        )
    return Decision(value)


def _version(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise ValidationError("A version is a whole number from 1.", pointer="/version")
    return value


def read_text(body: dict[str, Any], name: str, most: int) -> str | None:
    """
    Return one text of a body, if it is given.

    Raises:
        ValidationError: it is none of 1 to `most` bytes.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= most:
        raise ValidationError(f"This must be a text of 1 to {most} bytes.", pointer=f"/{name}")
    return value


def read_deadline(value: Any, *, name: str = "expires_at") -> datetime | None:
    """
    Return a member of a body that is a time, if it is given.

    Raises:
        ValidationError: it is no time.
    """
    if value is None:
        return None
    try:
        return parse_time(value)
    except ValueError as fault:
        raise ValidationError(str(fault), pointer=f"/{name}") from fault

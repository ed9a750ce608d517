"""The page of who read or changed something about a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.core import signing
from django.http import HttpRequest, HttpResponse

from preferences.readings import flush_readings
from privacy.activity import Activity, list_activity
from privacy.page_base import Page
from privacy.page_words import ACTIONS, Words
from tenants.exceptions import NotFound
from tenants.times import parse_time
from tenants.units import unit_of_work

#: Things that somebody did, on one page.
MOST = 50

_CURSOR = "consentful.page.activity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that somebody did, in words."""

    at: datetime
    #: A reading is noted by the day.
    is_day: bool
    words: Words
    actor: str
    is_own: bool
    key: str
    purpose: str
    reason: str

    @classmethod
    def of(cls, activity: Activity, login: str | None) -> Self:
        """
        Return it in words.

        Args:
            login: the person's own user name; None where somebody else looks.
        """
        item: dict[str, Any] = activity.item
        return cls(
            at=parse_time(item["at"]),
            is_day=item["action"] == "preference.read",
            words=ACTIONS.get(item["action"], item["action"]),
            actor=item["actor"] or "",
            is_own=login is not None and item["actor"] == login,
            key=item["target"]["key"] or "",
            purpose=item["purpose"] or "",
            reason=item["reason"] or "",
        )


class ActivityPage(Page):
    """Who did what, newest first. No values."""

    part = "activity"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        caller = self.caller
        before = _before(request)
        flush_readings()
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            found: Sequence[Activity] = list_activity(
                tenant_id=caller.tenant_id, subject=self.subject, before=before, most=MOST + 1
            )
        more = None
        if len(found) > MOST:
            found = found[:MOST]
            more = signing.dumps(found[-1].position, salt=_CURSOR)
        login = None if caller.is_guardian else caller.username
        deeds = [Deed.of(one, login) for one in found]
        return self.show(request, "activity", {"deeds": deeds, "more": more})


def _before(request: HttpRequest) -> Any:
    text = request.GET.get("before")
    if text is None:
        return None
    try:
        return signing.loads(text, salt=_CURSOR)
    except signing.BadSignature as fault:
        raise NotFound from fault

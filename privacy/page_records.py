"""The pages of what is held about a person: all of it, one record, its correction, its forgetting."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Self

from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from consent.models import Purpose
from preferences.attempts import Write
from preferences.readings import flush_readings
from preferences.records import Record
from preferences.services import put_preference
from preferences.values import check_value
from privacy.held import Held, get_held, list_held
from privacy.holders import stores
from privacy.page_base import Page
from privacy.page_forms import ValueForm
from privacy.page_values import Shown, lay_out
from privacy.page_words import CLOSED, GROUNDS, SOURCES, Words
from tenants.documents import JSONValue
from tenants.exceptions import (
    Forbidden,
    InvalidJSON,
    InvalidValue,
    NotFound,
    PermissionDenied,
    ServiceError,
    StaleRevision,
    TooLarge,
    UndeclaredKey,
)
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: Records on one page.
MOST = 50
#: Characters of a value that a list shows at once.
MOST_UNFOLDED = 600

_CURSOR = "consentful.page.overview"
#: What a form answers by itself, with what was typed still in it.
_ANSWERED = (Forbidden, InvalidValue, InvalidJSON, TooLarge, UndeclaredKey)


#: Stores that other parts of the page show.
SHOWN_ELSEWHERE = frozenset({"preferences", "consents", "readings", "events"})
#: Things of another store that are listed; an export has them all.
MOST_BESIDES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Besides:
    """What one store other than the records holds about the person."""

    holds: str
    items: Sequence[Shown]
    is_cut: bool


class OverviewPage(Page):
    """Everything that is held, by purpose. Needs no consent."""

    part = "overview"
    shows_records = True

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        caller = self.caller
        flush_readings()  # those of this process; others write theirs within a second
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            found = list_held(
                caller=caller, subject=self.subject, after=_after(request), most=MOST + 1
            )
        more = None
        if len(found) > MOST:
            found = found[:MOST]
            more = signing.dumps((found[-1].purpose.pk, found[-1].record.id), salt=_CURSOR)
        groups = [
            _group(purpose, list(group))
            for purpose, group in groupby(found, key=lambda held: held.purpose)
        ]
        is_first = "after" not in request.GET
        besides = () if more or not is_first else self.list_besides()
        return self.show(
            request,
            "overview",
            {"groups": groups, "more": more, "is_first": is_first, "besides": besides},
        )

    def list_besides(self) -> Sequence[Besides]:
        """Return what other stores hold about the person: their login, and what a host keeps."""
        caller = self.caller
        found = []
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            for holder, store in stores():
                if store.name in SHOWN_ELSEWHERE:
                    continue
                items = holder.export(
                    tenant_id=caller.tenant_id, subject=self.subject, store=store.name
                )
                shown = [lay_out(item) for item in islice(items, MOST_BESIDES + 1)]
                if shown:
                    found.append(
                        Besides(
                            holds=_(store.holds),  # English in the apps, looked up here
                            items=shown[:MOST_BESIDES],
                            is_cut=len(shown) > MOST_BESIDES,
                        )
                    )
        return found


class RecordPage(Page):
    """One record: all that is known about it, and its correction."""

    part = "overview"

    def get(self, request: HttpRequest, tenant: str, handle: str) -> HttpResponse:
        held = self.find(handle)
        return self.show_record(request, held, ValueForm(held=held))

    def post(self, request: HttpRequest, tenant: str, handle: str) -> HttpResponse:
        held = self.find(handle)
        if self.caller.is_guardian:
            # A mandate opens a person's rights, not everyday writing (see the HTTP interface).
            raise PermissionDenied("A guardian does not write what is held.")
        form = ValueForm(request.POST, held=held)
        if not form.is_valid():
            return self.show_record(request, held, form, status=400)
        value = form.cleaned_data["value"]
        try:
            self.save(held, value, form.cleaned_data["revision"])
        except StaleRevision:
            return self.show_conflict(request, handle, form)
        except _ANSWERED as refusal:
            return self.show_record(request, held, form, refusal=refusal, status=refusal.status)
        messages.success(request, _("Saved."), fail_silently=True)
        return self.go("record", handle)

    def find(self, handle: str) -> Held:
        """Return the record that a handle names."""
        caller = self.caller
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            return get_held(caller=caller, subject=self.subject, handle=handle)

    def save(self, held: Held, value: JSONValue, revision: str) -> None:
        """Replace exactly the version that was seen."""
        put_preference(
            caller=self.caller,
            scope=Scope.of_subject(self.subject),
            key=held.record.key,
            write=Write(
                value=value,
                value_text=check_value(value),
                mode="replace",
                revisions=(revision,),
            ),
        )

    def show_record(
        self,
        request: HttpRequest,
        held: Held,
        form: ValueForm,
        *,
        refusal: ServiceError | None = None,
        conflict: dict[str, Any] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        """Show the record with a form, and what became of an attempt to change it."""
        context = {
            **entry_of(held),
            "form": form,
            "refusal": refusal,
            "because": refusal and _because(refusal),
            "conflict": conflict,
        }
        return self.show(request, "record", context, status=status)

    def show_conflict(self, request: HttpRequest, handle: str, typed: ValueForm) -> HttpResponse:
        """Show what was typed beside what stands there now; the next attempt replaces that."""
        try:
            held = self.find(handle)
        except NotFound:
            return self.show(
                request,
                "gone",
                {"mine": lay_out(typed.cleaned_data["value"]), "text": typed["value"].value()},
                status=409,
            )
        data = request.POST.copy()
        data["revision"] = held.record.revision
        form = ValueForm(data, held=held)
        form.is_valid()
        conflict = {"mine": lay_out(typed.cleaned_data["value"])}
        return self.show_record(request, held, form, conflict=conflict, status=409)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the templates show of one record."""

    held: Held
    record: Record
    shown: Shown
    writer: Words
    ground: Words
    closed: Words
    detail: str
    origin: Sequence[tuple[str, Any]]
    metadata: Shown | None

    @property
    def is_long(self) -> bool:
        """Whether a list of entries shows it folded."""
        return len(self.record.value_text) > MOST_UNFOLDED

    @classmethod
    def of(cls, held: Held) -> Self:
        """Lay out one record."""
        record = held.record
        provenance = json.loads(record.provenance_text)
        metadata = json.loads(record.metadata_text)
        return cls(
            held=held,
            record=record,
            shown=lay_out(record.value),
            writer=SOURCES.get(record.source, record.source),
            ground=GROUNDS[held.purpose.lawful_basis],
            closed=CLOSED.get(held.closed, CLOSED["other"]) if held.closed else "",
            detail=provenance["detail"] or "",
            origin=sorted((provenance["origin"] or {}).items()),
            metadata=lay_out(metadata) if metadata else None,
        )


def entry_of(held: Held) -> dict[str, Any]:
    """Return one record for a page of its own."""
    return {"entry": Entry.of(held), "held": held, "record": held.record}


def _group(purpose: Purpose, helds: Sequence[Held]) -> dict[str, Any]:
    entries = [Entry.of(held) for held in helds]
    # Said once where it holds for all of them.
    reasons = {held.closed for held in helds}
    return {
        "purpose": purpose,
        "ground": GROUNDS[purpose.lawful_basis],
        "closed": entries[0].closed if len(reasons) == 1 else "",
        "entries": entries,
    }


def _because(refusal: ServiceError) -> Words:
    """Return why a value was not saved."""
    if isinstance(refusal, Forbidden):
        return CLOSED.get(refusal.code, CLOSED["other"])
    if isinstance(refusal, UndeclaredKey):
        return CLOSED["undeclared"]
    if isinstance(refusal, TooLarge):
        return _("It is too large: an entry takes 64 KiB at most.")
    return _("This value is not allowed here.")


def _after(request: HttpRequest) -> tuple[int, int]:
    text = request.GET.get("after")
    if text is None:
        return 0, 0
    try:
        purpose, last = signing.loads(text, salt=_CURSOR)
    except signing.BadSignature as fault:
        raise NotFound from fault
    return int(purpose), int(last)

"""The pages of forgetting: what would go, the last word on it, and the receipt. Need no consent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from audit.exceptions import SigningKeyMissing
from consent.models import Purpose
from consent.selectors import get_purpose
from privacy.conf import backup_days
from privacy.erasing import BACKUPS, SUPPRESSION
from privacy.held import get_held
from privacy.holders import host_stores, stores
from privacy.models import Erasure, ErasureHolder
from privacy.page_base import Page
from privacy.page_records import RecordPage, entry_of
from privacy.page_words import OUTCOMES, Words
from privacy.receipts import sign_receipt
from privacy.selectors import get_erasure, preview_erasure
from privacy.services import request_erasure
from tenants.exceptions import NotFound, StaleRevision
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: Stores whose entries stay as proof: what goes of them is the name.
BLANKED = frozenset({"consents", "events"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What became of one store in an erasure, in words."""

    holds: Words
    outcome: Words
    erased: int | None
    kept: int | None
    ground: str
    is_empty: bool
    is_held: bool


class ForgetRecordPage(RecordPage):
    """What would go with one record, and its forgetting."""

    def get(self, request: HttpRequest, tenant: str, handle: str) -> HttpResponse:
        return self.preview(request, handle)

    def post(self, request: HttpRequest, tenant: str, handle: str) -> HttpResponse:
        caller, subject = self.caller, self.subject
        try:
            with unit_of_work(
                tenant_id=caller.tenant_id,
                actor=caller.actor,
                subjects=[Scope.of_subject(subject).name],
                exclusive=True,
            ):
                held = get_held(caller=caller, subject=subject, handle=handle)
                # What was not seen is not forgotten by mistake; nobody writes while we look.
                if held.record.revision != request.POST.get("revision"):
                    raise StaleRevision
                erasure, _was_there = request_erasure(
                    caller=caller, subject=subject, keys=[held.record.key]
                )
        except StaleRevision:
            return self.preview(request, handle, is_changed=True, status=409)
        return self.go("erasure", erasure.reference)

    def preview(
        self, request: HttpRequest, handle: str, *, is_changed: bool = False, status: int = 200
    ) -> HttpResponse:
        """Show what would go and what stays."""
        context = {**entry_of(self.find(handle)), "is_changed": is_changed}
        return self.show(request, "forget_record", context, status=status)


class ForgetPage(Page):
    """What would go with everything, or with all that serves one purpose, and its forgetting."""

    part = "forget"

    def get(self, request: HttpRequest, tenant: str, purpose: str | None = None) -> HttpResponse:
        return self.preview(request, self.find_purpose(purpose))

    def post(self, request: HttpRequest, tenant: str, purpose: str | None = None) -> HttpResponse:
        found = self.find_purpose(purpose)
        if request.POST.get("sure") != "yes":
            return self.preview(request, found, is_unsure=True, status=400)
        erasure, _was_there = request_erasure(
            caller=self.caller,
            subject=self.subject,
            purposes=None if found is None else [found.slug],
        )
        if found is not None:
            return self.go("erasure", erasure.reference)
        context = erasure_as_words(erasure)
        if self.caller.is_guardian:
            # The mandate went with the person: no address of these pages opens any more.
            context |= {"menu": (), "wards": (), "acts_for": None, "is_over": True}
        # At once, not at an address of its own: a host's login may stand for nobody from now on.
        return self.show(request, "erasure", context)

    def find_purpose(self, slug: str | None) -> Purpose | None:
        """Return the purpose whose records are to go; None for everything."""
        if slug is None:
            return None
        caller = self.caller
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            return get_purpose(tenant_id=caller.tenant_id, slug=slug)

    def preview(
        self,
        request: HttpRequest,
        purpose: Purpose | None,
        *,
        is_unsure: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        """Show what would go, store by store, and what stays."""
        found = preview_erasure(
            caller=self.caller,
            subject=self.subject,
            purposes=None if purpose is None else [purpose.slug],
        )
        context: dict[str, Any] = {
            "purpose": purpose,
            "goes": [
                {"holds": _(one.holds), "count": one.count, "loses_name": one.holder in BLANKED}
                for one in found
            ],
            # Nobody counts there before it is done: another system is asked afterwards.
            "elsewhere": [_(store.holds) for _holder, store in host_stores()],
            "days": backup_days(),
            "is_unsure": is_unsure,
        }
        if purpose is None:
            context["choices"] = self.list_purposes()
        return self.show(request, "forget", context, status=status)

    def list_purposes(self) -> Sequence[Purpose]:
        """Return the purposes for which something is held, to be forgotten one by one."""
        caller = self.caller
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            return list(
                Purpose.objects.filter(
                    tenant_id=caller.tenant_id,
                    preference__scope=str(Scope.of_subject(self.subject)),
                )
                .distinct()
                .order_by("pk")
            )


class ErasurePage(Page):
    """What became of one erasure: the receipt, as people read it."""

    part = "forget"

    def get(self, request: HttpRequest, tenant: str, reference: str) -> HttpResponse:
        erasure = get_erasure(caller=self.caller, reference=reference)
        return self.show(request, "erasure", erasure_as_words(erasure))


class ReceiptPage(Page):
    """The signed receipt of one erasure, as a file."""

    part = "forget"

    def get(self, request: HttpRequest, tenant: str, reference: str) -> HttpResponse:
        erasure = get_erasure(caller=self.caller, reference=reference)
        try:
            receipt = sign_receipt(erasure, tenant=self.caller.tenant)
        except SigningKeyMissing as fault:
            raise NotFound("This service signs nothing: it has no key.") from fault
        return HttpResponse(
            receipt.jws,
            content_type="application/jose",
            headers={
                "Content-Disposition": f'attachment; filename="erasure-{erasure.reference}.jws"'
            },
        )


def erasure_as_words(erasure: Erasure) -> dict[str, Any]:
    """Return what the template shows of an erasure."""
    known = {store.name: store.holds for _holder, store in stores()}
    parts = [
        Part(
            holds=_words_of(one, known),
            outcome=OUTCOMES[one.status],
            erased=one.erased,
            kept=(one.held or 0) + (one.kept or 0),
            ground=_ground_of(one, erasure.requested_at.date()),
            is_empty=one.status == ErasureHolder.Status.NOTHING_FOUND,
            is_held=one.status == ErasureHolder.Status.HELD,
        )
        for one in sorted(erasure.holders.all(), key=lambda one: one.position)
    ]
    return {
        "erasure": erasure,
        "parts": parts,
        "is_done": erasure.finished_at is not None,
        "is_held": any(part.is_held for part in parts),
    }


def _words_of(one: ErasureHolder, known: dict[str, str]) -> Words:
    if one.holder == BACKUPS:
        return _("Backups of the database")
    if one.holder == SUPPRESSION:
        return _("The note that keeps a restored backup from bringing it back; it names nobody.")
    # What a store holds is said in English by its app; here it is looked up.
    return _(known.get(one.holder, one.holder))


def _ground_of(one: ErasureHolder, asked: date) -> str:
    if one.holder == BACKUPS:
        return _backup_words(asked)
    return _(one.ground) if one.ground else ""


def _backup_words(asked: date) -> str:
    """Return until when a backup holds what was erased."""
    days = backup_days()
    if days is None:
        return _("A backup holds it until the last one is gone. A restore erases it again.")
    return _("A backup holds it until %(day)s at the latest. A restore erases it again.") % {
        "day": (asked + timedelta(days=days)).isoformat()
    }

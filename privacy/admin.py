"""The admin's pages of erasures: what was asked for, what became of it, receipts. Nobody edits them."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html

from audit.exceptions import SigningKeyMissing
from consent.admin_objections import person_named
from privacy.admin_dashboard import DashboardPages
from privacy.admin_erase import EraseForm
from privacy.models import Erasure, ErasureHolder
from privacy.receipts import Receipt, sign_receipt
from privacy.selectors import get_erasure
from privacy.services import retry_erasure
from tenants.admin import NUMBERED, subject_links
from tenants.admin_acts import act
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_lists import shown_time
from tenants.admin_place import caller_of
from tenants.exceptions import NotFound
from tenants.models import Subject
from tenants.pseudonyms import digests_of
from tenants.roles import STEWARDS
from tenants.units import current_unit

ERASURE = "consentful_privacy_erasure"
SUBJECT = "consentful_tenants_subject"


class UnfinishedFilter(admin.SimpleListFilter):
    """By what is not finished, which an index answers."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "Unfinished")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(finished_at=None) if self.value() == "open" else queryset


@admin.register(Erasure)
class ErasureAdmin(DashboardPages):
    """Asked for, watched and certified here; never edited."""

    hidden = ("salt", "name", "login", "digest", "keys", "key_digests")
    linked = ("subject",)
    list_display = (
        "reference", "person", "extent", "state", "waits_for", shown_time("requested_at"),
        shown_time("finished_at"),
    )  # fmt: skip
    list_filter = (UnfinishedFilter,)
    list_select_related = ("subject",)
    search_fields = ("reference",)
    search_help_text = (
        "An erasure's own id, the pseudonym of a forgotten person, or the exact id of a person:"
        " its keyed digest is compared, since the name itself is gone."
    )
    change_form_template = "admin/consentful_privacy/erasure/change_form.html"
    purpose_text = (
        "What was asked to be forgotten, and what became of it with everyone who held something."
        " Names nobody. A person's page leads to where it is asked for."
    )
    empty_text = "Nobody has asked to be forgotten yet."

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("erase/", wrap(self.erase_view), name=f"{ERASURE}_erase"),
            path("<int:row_id>/retry/", wrap(self.retry_view), name=f"{ERASURE}_retry"),
            path("<int:row_id>/receipt/", wrap(self.receipt_view), name=f"{ERASURE}_receipt"),
            *super().get_urls(),
        ]

    # Lists -------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.select_related("subject").prefetch_related("holders")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip().removeprefix("user::")
        unit = current_unit()
        if not text or unit is None:
            return queryset, False
        numbered = NUMBERED.fullmatch(text)
        if numbered:
            return queryset.filter(subject=int(numbered[1])), False
        # In two steps: each is answered by an index.
        person = Subject.objects.filter(tenant=unit.tenant_id, external_id=text).first()
        found = Q(reference=text) | Q(digest__in=digests_of(unit.tenant_id, text))
        if person is not None:
            found |= Q(subject=person)
        return queryset.filter(found), False

    @admin.display(description="person")
    def person(self, obj: Any) -> str:
        """The pseudonym of whoever was forgotten, else a number: who it is stands on its page."""
        if obj.subject is None:
            return "nobody who was known"
        text = obj.subject.external_id if obj.subject.erased_at else f"subject {obj.subject_id}"
        return format_html(
            '<a href="{}">{}</a>', self.link(SUBJECT, "change", obj.subject_id), text
        )

    @admin.display(description="extent")
    def extent(self, obj: Any) -> str:
        if obj.is_whole:
            return "everything"
        parts = []
        if obj.key_digests is not None:
            # The keys themselves may say what was forgotten.
            parts.append(f"{len(obj.key_digests)} keys")
        if obj.purposes is not None:
            parts.append(f"for {', '.join(obj.purposes)}")
        return " ".join(parts)

    @admin.display(description="status")
    def state(self, obj: Any) -> str:
        return format_html('<span class="consentful-badge {}">{}</span>', obj.status, obj.status)

    @admin.display(description="waits for")
    def waits_for(self, obj: Any) -> str:
        return ", ".join(
            f"{one.holder} ({one.status})"
            for one in obj.holders.all()
            if one.status not in ErasureHolder.SETTLED
        )

    # One erasure -------------------------------------------------------------------------------

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [
            ("reference", "state"), ("person", "extent"), "method",
            (shown_time("requested_at"), shown_time("finished_at")),
        ]  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [
            "reference", "state", "person", "extent", "method", shown_time("requested_at"),
            shown_time("finished_at"),
        ]  # fmt: skip

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        row = context["original"]
        context["holders"] = sorted(row.holders.all(), key=lambda one: one.position)
        if row.finished_at is None:
            context["may_retry"] = self.has_retry_permission(request)
            context["is_failing"] = any(
                one.status == ErasureHolder.Status.FAILED for one in context["holders"]
            )
        else:
            try:
                receipt = self._receipt(request, row.reference)
                context["receipt"] = receipt
                context["receipt_text"] = json.dumps(receipt.payload, indent=2, ensure_ascii=False)
            except SigningKeyMissing:
                context["is_unsigned"] = True
        return super().render_change_form(request, context, *args, **more)

    def _receipt(self, request: HttpRequest, reference: str) -> Receipt:
        caller = caller_of(request)
        if caller is None:
            raise PermissionDenied
        return sign_receipt(get_erasure(caller=caller, reference=reference), tenant=caller.tenant)

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found = [] if obj.subject_id is None else [
            self.way("The person", SUBJECT, "change", obj.subject_id)
        ]  # fmt: skip
        return [*found, *super().links_of(request, obj)]

    # Deeds -------------------------------------------------------------------------------------

    def has_erase_permission(self, request: HttpRequest) -> bool:
        """Whether the user may have somebody forgotten: a steward who may add erasures."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_add_permission(
            self, request
        )

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the user may have holders asked again: a steward who may change erasures."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_change_permission(
            self, request
        )

    def erase_view(self, request: HttpRequest) -> HttpResponse:
        """Show what would go, and have it erased."""
        return act(
            self, request, may=self.has_erase_permission(request),
            make=lambda caller, data: EraseForm(data, caller=caller, subject=person_named(request)),
            follow=lambda form, row: self.link(ERASURE, "change", row.pk),
        )  # fmt: skip

    def retry_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Have the holders that failed asked again now."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])

        def retry(more: dict[str, Any]) -> HttpResponse:
            caller = caller_of(request)
            if caller is None or not self.has_retry_permission(request):
                raise PermissionDenied
            with self.unit(request, more["tenant"], None):
                row = self.get_queryset(request).filter(pk=row_id).first()
            if row is None:
                raise NotFound("There is no such erasure.")
            try:
                retry_erasure(caller=caller, reference=row.reference)
            except NotFound as refusal:
                self.message_user(request, refusal.detail, messages.ERROR)
            else:
                self.log_change(request, row, "")
                text = "The holders that failed are asked again now."
                self.message_user(request, text, messages.SUCCESS)
            return HttpResponseRedirect(self.link(ERASURE, "change", row.pk))

        response: HttpResponse = self.inside(request, retry, unit=nullcontext())
        return response

    def receipt_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Hand out the signed receipt as the file that `verify_erasure` takes."""

        def hand_out(more: dict[str, Any]) -> HttpResponse:
            if not self.has_view_permission(request):
                raise PermissionDenied
            row = self.get_queryset(request).filter(pk=row_id).first()
            if row is None:
                raise NotFound("There is no such erasure.")
            try:
                receipt = self._receipt(request, row.reference)
            except SigningKeyMissing as fault:
                raise NotFound("This service signs nothing: it has no key.") from fault
            name = f"erasure-{row.reference}.jws"
            return HttpResponse(
                receipt.jws,
                content_type="application/jose",
                headers={"Content-Disposition": f'attachment; filename="{name}"'},
            )

        response: HttpResponse = self.inside(request, hand_out)
        return response


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to its erasures, and to the next one."""
    rows = page.way("Erasures", ERASURE, "changelist", query=f"subject={subject.pk}")
    if subject.erased_at is not None:
        return [rows]
    query = urlencode({"subject": subject.external_id})
    return [rows, page.way("Forget", ERASURE, "erase", query=query)]


subject_links.append(links_of_subject)

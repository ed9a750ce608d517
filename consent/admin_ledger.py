"""The admin's pages of the ledger, which nobody edits, and the one that records a decision."""

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, Func, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html

from consent.admin_objections import ObjectionPages
from consent.models import ConsentEntry, ConsentState, Decision, Notice, Purpose
from consent.selectors import State, list_states
from consent.services import decide
from tenants.admin import subject_links
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import Refusable
from tenants.admin_lists import Scanned, shown_time
from tenants.admin_place import actor_of, caller_of, tenant_of
from tenants.callers import Caller
from tenants.exceptions import ServiceError, ValidationError
from tenants.models import Subject
from tenants.scopes import Scope
from tenants.times import parse_time
from tenants.units import current_unit, unit_of_work


class PurposeFilter(Scanned, admin.SimpleListFilter):
    """By purpose; a tenant has few."""

    title = "purpose"
    parameter_name = "purpose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        unit = current_unit()
        rows = Purpose.objects.filter(tenant=unit.tenant_id if unit else None).order_by("slug")
        return list(rows.values_list("pk", "slug")[:100])

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        if not value:
            return queryset
        return (
            queryset.filter(purpose=value)
            if value.isascii() and value.isdigit()
            else queryset.none()
        )


class DecisionFilter(Scanned, admin.SimpleListFilter):
    title = "decision"
    parameter_name = "decision"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [(one.value, str(one.label)) for one in Decision]

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(decision=self.value()) if self.value() else queryset


class LedgerAdmin(TenantModelAdmin):
    """Rows of one person and one purpose."""

    list_select_related = ("subject", "purpose")
    list_filter = (PurposeFilter, DecisionFilter)
    search_fields = ("subject",)
    search_help_text = "The exact id of a person, as in alice or user::alice."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        name = search_term.strip().removeprefix("user::")
        unit = current_unit()
        if not name or unit is None:
            return queryset, False
        try:
            name = Scope.of_subject(name).name
        except ServiceError as refusal:
            self.message_user(request, refusal.detail, messages.ERROR)
            return queryset.none(), False
        # Two steps: the index of the ledger begins with the person's number.
        person = Subject.objects.filter(tenant=unit.tenant_id, external_id=name).first()
        return (queryset.filter(subject=person) if person else queryset.none()), False

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        person = self.way("The person", "consentful_tenants_subject", "change", obj.subject_id)
        return [person, *super().links_of(request, obj)]


class DecisionForm(Refusable, forms.Form):
    """What a person decided about one purpose, and how the operator knows."""

    decision = forms.ChoiceField(
        choices=Decision.choices, widget=forms.RadioSelect, help_text="What the person said."
    )
    notice = forms.ModelChoiceField(
        queryset=Notice.objects.none(), required=False, empty_label="none",
        help_text="The notice that the person was shown; needed to give consent.",
    )  # fmt: skip
    expires_at = forms.CharField(
        label="Until", required=False, help_text="As 2030-01-31T12:00:00Z; empty for no end."
    )
    evidence = forms.CharField(
        required=False, max_length=2048, widget=forms.Textarea(attrs={"rows": 4, "cols": 80}),
        help_text="How you know: a letter, a call, a ticket. Needed for anyone but yourself.",
    )  # fmt: skip
    entry = forms.CharField(widget=forms.HiddenInput, required=False)
    pointers: ClassVar[dict[str, str]] = {"version": "notice", "locale": "notice"}

    def __init__(self, *args: Any, purpose: Purpose, **more: Any) -> None:
        super().__init__(*args, **more)
        field: Any = self.fields["notice"]
        field.queryset = purpose.notices.order_by("-version", "locale")

    def perform(self, caller: Caller, subject: str, purpose: str) -> State:
        """
        Record the decision.

        Raises:
            ServiceError: see `consent.services.decide`.
        """
        data = self.cleaned_data
        notice = data["notice"]
        until = data["expires_at"].strip()
        try:
            deadline = parse_time(until) if until else None
        except ValueError as fault:
            raise ValidationError(str(fault), pointer="/expires_at") from fault
        return decide(
            caller=caller,
            subject=subject,
            purpose=purpose,
            decision=Decision(data["decision"]),
            version=notice.version if notice else None,
            locale=notice.locale if notice else None,
            expires_at=deadline,
            evidence=data["evidence"] or None,
            entry=data["entry"] or None,
        )[0]


@admin.register(ConsentEntry)
class ConsentEntryAdmin(ObjectionPages, LedgerAdmin):
    list_display = (
        shown_time("at"), "subject", "purpose", "decision", "version", "method", "actor",
    )  # fmt: skip
    list_display_links = (shown_time("at"),)
    purpose_text = (
        "Every decision as it was made, newest first. Nothing here can be changed or removed; a"
        " new decision is a new entry."
    )
    empty_text = "Nobody has decided anything yet."
    change_list_template = "admin/consentful_consent/consententry/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.decide_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_decide"
        return [path("decide/", view, name=name), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        more = {"may_decide": self.may_decide(request), **(extra_context or {})}
        return super().changelist_view(request, more)

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """Show where a person stands, and record what it decided on one purpose."""
        tenant, caller = tenant_of(request), caller_of(request)
        if tenant is None or caller is None:
            return self.ask_for_tenant(request)
        subject = request.GET.get("subject", "").strip().removeprefix("user::")
        slug = request.GET.get("purpose", "")
        form: DecisionForm | None = None
        if request.method == "POST" and self.may_decide(request):
            with unit_of_work(tenant_id=tenant.pk, actor=actor_of(request)):
                purpose = Purpose.objects.filter(tenant=tenant, slug=slug).first()
                if purpose is not None:
                    form = DecisionForm(request.POST, purpose=purpose)
                    form.is_valid()
            # Outside that unit: a decision takes its own, with the exclusive fence.
            if form is not None and form.is_valid():
                try:
                    form.perform(caller, subject, slug)
                except ServiceError as refusal:
                    form.refuse(refusal)
                else:
                    return self._recorded(request, subject, slug)
        response: HttpResponse = self.inside(
            request, lambda more: self._decide_page(request, caller, subject, slug, form, more)
        )
        return response

    def _decide_page(
        self,
        request: HttpRequest,
        caller: Caller,
        subject: str,
        slug: str,
        form: DecisionForm | None,
        more: dict[str, Any],
    ) -> HttpResponse:
        if not self.may_decide(request):
            raise PermissionDenied
        states: Sequence[State] = ()
        if subject:
            try:
                name = Scope.of_subject(subject).name
                states = list_states(tenant_id=caller.tenant_id, subject=name)
            except ServiceError as refusal:
                self.message_user(request, refusal.detail, messages.ERROR)
        state = next((one for one in states if one.purpose == slug), None)
        if state is not None:
            purpose = Purpose.objects.get(tenant=caller.tenant_id, slug=slug)
            if form is None:
                form = DecisionForm(purpose=purpose, initial={"entry": state.entry})
            elif form.conflict is not None:
                # The next attempt is about what stands now, which the page shows.
                form.data = {**form.data.dict(), "entry": state.entry or ""}  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            **more,
            "title": f"Record a decision{f' of {subject}' if states else ''}",
            "opts": self.opts,
            "subject": subject,
            "states": states,
            "state": state,
            "form": form if state is not None else None,
            "media": self.media,
        }
        return TemplateResponse(
            request, "admin/consentful_consent/consententry/decide.html", context
        )

    def _recorded(self, request: HttpRequest, subject: str, slug: str) -> HttpResponse:
        tenant = tenant_of(request)
        with unit_of_work(tenant_id=tenant.pk if tenant else 0, actor=actor_of(request)):
            entry = (
                ConsentEntry.objects.filter(
                    tenant=tenant, subject__external_id=subject, purpose__slug=slug
                )
                .order_by("-sequence")
                .first()
            )
            if entry is not None:
                self.log_addition(request, entry, "")
        self.message_user(request, "The decision is in force.", messages.SUCCESS)
        query = urlencode({"subject": subject})
        return HttpResponseRedirect(
            self.link("consentful_consent_consententry", "decide", query=query)
        )


@admin.register(ConsentState)
class ConsentStateAdmin(LedgerAdmin):
    list_display = (
        "subject", "purpose", "status", "version", shown_time("since"), shown_time("expires_at"),
    )  # fmt: skip
    purpose_text = "Where each person stands now: the newest decision of the ledger, per purpose."
    empty_text = "Nobody has decided anything yet."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        status = Func(
            F("decision"), F("version"), F("expires_at"), F("purpose__required_version"),
            RawSQL("(SELECT consentful_now())", []),
            function="consentful_consent_status", output_field=TextField(),
        )  # fmt: skip
        rows: QuerySet[Any] = super().get_queryset(request).annotate(status_now=status)
        return rows

    @admin.display(description="status")
    def status(self, obj: Any) -> str:
        return format_html(
            '<span class="consentful-badge {}">{}</span>', obj.status_now, obj.status_now
        )

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        query = urlencode({"q": obj.subject.external_id, "purpose": obj.purpose_id})
        ledger = self.way("Decisions", "consentful_consent_consententry", "changelist", query=query)
        return [*super().links_of(request, obj), ledger]


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to where it stands and what it decided."""
    name = subject.external_id
    entry, state = "consentful_consent_consententry", "consentful_consent_consentstate"
    decide_query, query = urlencode({"subject": name}), urlencode({"q": name})
    if subject.erased_at is not None:
        return [page.way("Decisions", entry, "changelist", query=query)]
    return [
        page.way("Record a decision", entry, "decide", query=decide_query),
        page.way("Consents", state, "changelist", query=query),
        page.way("Decisions", entry, "changelist", query=query),
        page.way("Objections", entry, "objections", query=decide_query),
    ]


subject_links.append(links_of_subject)

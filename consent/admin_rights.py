"""The admin's pages of restrictions: what of a person is kept and not used. Rules: `restrictions`."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.models import ADDITION
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from consent.admin_objections import person_named
from consent.models import Restriction
from consent.restrictions import lift_restriction, restrict
from tenants.admin import subject_links
from tenants.admin_acts import ActForm, act, evidence_field, reason_field
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_lists import shown_time
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.models import Subject
from tenants.roles import STEWARDS

RESTRICTION = "consentful_consent_restriction"


class RestrictForm(ActForm):
    """Keep what is held about a person, and let nobody use it."""

    lead = (
        "What is restricted is kept and not used: every read and write of it is refused, whatever"
        " its purpose rests on. The person still sees it, and can have it deleted."
    )
    button = "Restrict"
    done = "The restriction is in force."
    flag = ADDITION

    key = forms.CharField(
        required=False, strip=False, max_length=800, widget=forms.TextInput(attrs={"size": 60}),
        help_text="Of one record alone; empty for everything about the person.",
    )  # fmt: skip
    evidence = evidence_field("How you know that the person wants it: a letter, a call, a ticket.")

    def __init__(self, *args: Any, subject: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.subject = subject
        self.title = f"Restrict what is held about {subject}"

    def perform(self) -> Restriction:
        return restrict(
            caller=self.caller,
            subject=self.subject,
            key=self.cleaned_data["key"] or None,
            evidence=self.cleaned_data["evidence"],
        )


class LiftForm(ActForm):
    """Let what was restricted be used again."""

    title = "Lift the restriction"
    lead = "Tell the person before you lift it (GDPR article 18(3)). It reads the reason, too."
    button = "Lift it"
    done = "The restriction is lifted."

    reason = reason_field("Why it may be used again.")

    def __init__(self, *args: Any, row: Restriction, **more: Any) -> None:
        super().__init__(*args, **more)
        self.row = row

    def perform(self) -> Restriction:
        return lift_restriction(
            caller=self.caller,
            subject=self.row.subject.external_id,
            key=self.row.key,
            reason=self.cleaned_data["reason"],
        )


@admin.register(Restriction)
class RestrictionAdmin(TenantModelAdmin):
    """Restrictions are set and lifted, never edited; lifted ones stay."""

    linked = ("subject",)
    list_display = (
        shown_time("at"), "subject", "what", "method", "actor", shown_time("lifted_at"),
    )  # fmt: skip
    list_display_links = (shown_time("at"),)
    list_select_related = ("subject",)
    purpose_text = (
        "What of a person is kept and not used, and what was (GDPR article 18). A person's page"
        " leads to where it is restricted."
    )
    empty_text = "Nobody has had anything restricted."

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("restrict/", wrap(self.restrict_view), name=f"{RESTRICTION}_restrict"),
            path("<int:row_id>/lift/", wrap(self.lift_view), name=f"{RESTRICTION}_lift"),
            *super().get_urls(),
        ]

    @admin.display(description="what")
    def what(self, obj: Any) -> str:
        return "everything" if obj.key is None else str(obj.key)

    def has_restrict_permission(self, request: HttpRequest) -> bool:
        """Whether the user may restrict: a steward, by Django's permission to add restrictions."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_add_permission(
            self, request
        )

    def has_lift_permission(self, request: HttpRequest) -> bool:
        """Whether the user may lift: a steward, by Django's permission to change restrictions."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_change_permission(
            self, request
        )

    def restrict_view(self, request: HttpRequest) -> HttpResponse:
        """Restrict everything about a person, or one record."""
        return act(
            self, request, may=self.has_restrict_permission(request),
            make=lambda caller, data: RestrictForm(
                data, caller=caller, subject=person_named(request)
            ),
            follow=lambda form, row: self.link(RESTRICTION, "change", row.pk),
        )  # fmt: skip

    def lift_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Lift one restriction."""

        def make(caller: Caller, data: Any) -> LiftForm:
            rows = Restriction.objects.filter(tenant=caller.tenant_id, pk=row_id, lifted_by=None)
            row = rows.select_related("subject").first()
            if row is None:
                raise NotFound("There is no such restriction in force.")
            return LiftForm(data, caller=caller, row=row)

        return act(
            self, request, may=self.has_lift_permission(request), make=make,
            follow=lambda form, row: self.link(RESTRICTION, "change", row.pk),
        )  # fmt: skip

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found = [self.way("The person", "consentful_tenants_subject", "change", obj.subject_id)]
        if obj.lifted_by is None and self.has_lift_permission(request):
            found.insert(0, self.way("Lift it", RESTRICTION, "lift", obj.pk))
        return [*found, *super().links_of(request, obj)]


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to what is restricted about it."""
    rows = page.way("Restrictions", RESTRICTION, "changelist", query=f"subject={subject.pk}")
    if subject.erased_at is not None:
        return [rows]
    query = urlencode({"subject": subject.external_id})
    return [
        rows,
        page.way("Restrict", RESTRICTION, "restrict", query=query),
    ]


subject_links.append(links_of_subject)

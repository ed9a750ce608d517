"""The admin's pages of guardians: who acts for whom, with what paper. Operators appoint and end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.models import DELETION
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from tenants.admin_acts import (
    ActForm,
    act,
    deadline_field,
    evidence_field,
    read_deadline,
    reason_field,
)
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import ServiceForm
from tenants.admin_lists import shown_time
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.guardians import check_appointer, end_guardianship, grant_guardianship
from tenants.models import Guardianship, Subject
from tenants.roles import STEWARDS

GUARDIANSHIP = "consentful_tenants_guardianship"


class AppointForm(ServiceForm):
    class Meta:
        model = Guardianship
        fields: ClassVar[list[str]] = []

    username = forms.CharField(
        label="Login of the guardian", max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": 40}),
        help_text="The exact user name of a member of this tenant.",
    )  # fmt: skip
    subject = forms.CharField(
        label="Acts for", max_length=200, strip=False, help_text="The id of the person."
    )
    evidence = evidence_field("How you know: the court's paper, the birth certificate.")
    expires_at = deadline_field("Until")
    pointers: ClassVar[dict[str, str]] = {"scope": "subject"}

    def perform(self, data: dict[str, Any]) -> Guardianship:
        check_appointer(self.caller)
        return grant_guardianship(
            tenant_id=self.caller.tenant_id,
            username=data["username"],
            subject=data["subject"],
            evidence=data["evidence"],
            expires_at=read_deadline(data["expires_at"], "/expires_at"),
            actor=self.caller.actor,
        )


class EndForm(ActForm):
    """End one guardianship before its time."""

    title = "End the guardianship"
    lead = "The login acts for the person no longer. What it decided stays as it is."
    button = "End it"
    done = "The guardianship has ended."
    flag = DELETION

    reason = reason_field("The trail keeps it.")

    def __init__(self, *args: Any, row: Guardianship, **more: Any) -> None:
        super().__init__(*args, **more)
        self.row = row

    def perform(self) -> Guardianship:
        check_appointer(self.caller)
        end_guardianship(
            tenant_id=self.caller.tenant_id,
            username=self.row.user.get_username(),
            subject=self.row.subject.external_id,
            actor=replace(self.caller, reason=self.cleaned_data["reason"]).actor,
        )
        return self.row


@admin.register(Guardianship)
class GuardianshipAdmin(TenantModelAdmin):
    """A mandate is appointed anew or ended, not edited."""

    can_add = True
    editors = STEWARDS
    form = AppointForm
    linked = ("subject",)
    list_display = ("id", "user", "subject", shown_time("expires_at"), shown_time("created_at"))
    list_select_related = ("user", "subject")
    purpose_text = (
        "Logins that act for a person who does not act alone. Appoint again to change the paper or"
        " the end."
    )
    empty_text = "Nobody acts for anybody else here."

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.end_view)
        return [path("<int:row_id>/end/", view, name=f"{GUARDIANSHIP}_end"), *super().get_urls()]

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Whether the user may end one: a steward, by Django's permission to delete them."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_delete_permission(
            self, request
        )

    def end_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Say why, and end it."""

        def make(caller: Caller, data: Any) -> EndForm:
            rows = Guardianship.objects.filter(tenant=caller.tenant_id, pk=row_id)
            row = rows.select_related("user", "subject").first()
            if row is None:
                raise NotFound("There is no such guardianship.")
            return EndForm(data, caller=caller, row=row)

        return act(
            self, request, may=self.has_end_permission(request), make=make,
            follow=lambda form, row: self.link(GUARDIANSHIP, "changelist"),
        )  # fmt: skip

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found = [self.way("The person", "consentful_tenants_subject", "change", obj.subject_id)]
        if self.has_end_permission(request):
            found.insert(0, self.way("End it", GUARDIANSHIP, "end", obj.pk))
        return [*found, *super().links_of(request, obj)]


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to who acts for it."""
    found = [page.way("Guardians", GUARDIANSHIP, "changelist", query=f"subject={subject.pk}")]
    if subject.erased_at is None:
        query = urlencode({"subject": subject.external_id})
        found.append(page.way("Appoint a guardian", GUARDIANSHIP, "add", query=query))
    return found

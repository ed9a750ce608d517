"""The admin's page of objections: entries of the ledger, for purposes that can be objected to."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.models import ADDITION
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html

from consent.models import ConsentEntry, Objection
from consent.objections import Stand, lift_objection, list_stands, object_to
from tenants.admin_acts import ActForm, Table, act, evidence_field
from tenants.admin_base import TenantModelAdmin
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.roles import STEWARDS
from tenants.scopes import Scope
from tenants.units import unit_of_work

ENTRY = "consentful_consent_consententry"


class ObjectionForm(ActForm):
    """Record that a person objects to a purpose, or that an objection stands no longer."""

    evidence = evidence_field("How you know: a letter, a call, a ticket.")
    flag = ADDITION

    def __init__(
        self, *args: Any, subject: str, stands: Sequence[Stand], purpose: str, address: str,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **more)
        self.subject, self.stands, self.address = subject, stands, address
        self.title = f"Objections of {subject}"
        self.lead = (
            "Against purposes that rest on a legitimate or a public interest a person can object"
            " (GDPR article 21). Reads and writes for it are refused at once."
        )
        self.stand = next((one for one in stands if one.purpose == purpose), None)
        if self.stand is None:
            return
        self.is_lifted = self.stand.status == Objection.OBJECTED
        if self.is_lifted:
            self.button = f"Lift the objection to {purpose}"
            self.done = "The objection stands no longer."
            self.fields["evidence"].label = "Reason"
            self.fields[
                "evidence"
            ].help_text = "Taken back by the person, or overridden on compelling grounds. The person reads it."
        else:
            self.button = f"Record the objection to {purpose}"
            self.done = "The objection is in force."

    def table(self) -> Table:
        return Table(
            caption=f"Where {self.subject} stands now",
            heads=("Purpose", "Status", "Since", ""),
            rows=[
                (
                    one.purpose,
                    one.status.replace("_", " "),
                    "-" if one.since is None else f"{one.since:%Y-%m-%d %H:%M}",
                    "chosen below" if one is self.stand else self._way(one),
                )
                for one in self.stands
            ],
        )

    def _way(self, one: Stand) -> str:
        query = urlencode({"subject": self.subject, "purpose": one.purpose})
        word = "Lift" if one.status == Objection.OBJECTED else "Record an objection"
        return format_html('<a href="{}?{}">{}</a>', self.address, query, word)

    def perform(self) -> ConsentEntry:
        if self.stand is None:
            raise NotFound("There is no such purpose that can be objected to.")
        text = self.cleaned_data["evidence"]
        about: dict[str, Any] = {
            "caller": self.caller,
            "subject": self.subject,
            "purpose": self.stand.purpose,
        }
        if self.is_lifted:
            lift_objection(**about, reason=text)
        else:
            object_to(**about, evidence=text)
        with unit_of_work(tenant_id=self.caller.tenant_id, actor=self.caller.actor):
            return ConsentEntry.objects.filter(
                tenant=self.caller.tenant_id, subject__external_id=self.subject,
                purpose__slug=self.stand.purpose,
            ).latest("sequence")  # fmt: skip


class ObjectionPages(TenantModelAdmin):
    """What the pages of the ledger say about objections."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.objections_view)
        return [path("objections/", view, name=f"{ENTRY}_objections"), *super().get_urls()]

    def may_decide(self, request: HttpRequest) -> bool:
        """Whether the user may record decisions: a steward, by Django's permission to add entries."""
        return self.has_role(request, STEWARDS) and admin.ModelAdmin.has_add_permission(
            self, request
        )

    def objections_view(self, request: HttpRequest) -> HttpResponse:
        """Show where a person stands, and record an objection or lift it."""
        address = self.link(ENTRY, "objections")

        def make(caller: Caller, data: Any) -> ObjectionForm:
            subject = person_named(request)
            return ObjectionForm(
                data, caller=caller, subject=subject, address=address,
                purpose=request.GET.get("purpose", ""),
                stands=list_stands(tenant_id=caller.tenant_id, subject=subject),
            )  # fmt: skip

        return act(
            self, request, may=self.may_decide(request), make=make,
            follow=lambda form, row: f"{address}?{urlencode({'subject': person_named(request)})}",
        )  # fmt: skip


def person_named(request: HttpRequest) -> str:
    """
    Return the id of the person that an address names.

    Raises:
        InvalidScope: it names none.
    """
    return Scope.of_subject(request.GET.get("subject", "").strip().removeprefix("user::")).name

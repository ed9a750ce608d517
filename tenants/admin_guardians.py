"""The admin's pages of guardians: who acts for whom, appointed by operators and owners."""

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.admin_acts import deadline_field, evidence_field, read_deadline
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField, find_named_person
from tenants.admin_lists import shown_time
from tenants.admin_place import caller_of
from tenants.guardians import check_appointer, grant_guardianship
from tenants.models import Guardianship, Subject, Tenant
from tenants.roles import STEWARDS


class GuardianshipForm(ServiceForm):
    class Meta:
        model = Guardianship
        fields: ClassVar[list[str]] = []

    user = UserNameField(label="Login of the guardian", help_text="The exact user name.")
    subject = forms.CharField(label="Person", help_text="Id of the person that is acted for.")
    evidence = evidence_field("The paper that says so: the guardian and the person can read this.")
    expires_at = deadline_field("Until")
    pointers: ClassVar[dict[str, str]] = {"scope": "subject", "username": "user"}

    def perform(self, data: dict[str, Any]) -> Any:
        check_appointer(self.caller)
        return grant_guardianship(
            tenant_id=self.caller.tenant_id, username=data["user"].get_username(),
            subject=data["subject"], evidence=data["evidence"], expires_at=read_deadline(data["expires_at"], "/expires_at"),
            actor=self.caller.actor,
        )  # fmt: skip


@admin.register(Guardianship)
class GuardianshipAdmin(TenantModelAdmin):
    """Appointed and ended, never changed: a new mandate for the same two replaces the old one."""

    can_add = can_delete = True
    editors = STEWARDS
    form = GuardianshipForm
    linked = ("subject",)
    list_display = (
        "__str__",
        "user",
        "subject",
        shown_time("created_at"),
        shown_time("expires_at"),
    )
    list_select_related = ("user", "subject")
    purpose_text = (
        "Who decides, sees the data and asks for erasure in the place of a person that does not act"
        " alone. The trail names both."
    )
    empty_text = "Nobody acts for anybody else yet."

    def fenced(self, request: HttpRequest, tenant: Tenant, object_id: str | None) -> Sequence[str]:
        return find_named_person(request, "subject")

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        person = self.way("The person", "consentful_tenants_subject", "change", obj.subject_id)
        return [person, *super().links_of(request, obj)]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.check_may_end(request)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.check_may_end(request)
        for row in queryset:
            row.delete()

    def check_may_end(self, request: HttpRequest) -> None:
        """Refuse whoever is no operator or owner, whatever Django's own permissions say."""
        caller = caller_of(request)
        if caller is not None:
            check_appointer(caller)


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to who acts for it."""
    rows = "consentful_tenants_guardianship"
    found = [page.way("Guardians", rows, "changelist", query=f"subject={subject.pk}")]
    if subject.erased_at is None:
        query = urlencode({"subject": subject.external_id})
        found.append(page.way("Appoint a guardian", rows, "add", query=query))
    return found

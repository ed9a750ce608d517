"""The admin's pages of guardians: who acts for whom, appointed by operators and owners."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.admin_base import TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField
from tenants.admin_lists import shown_time
from tenants.admin_place import caller_of
from tenants.exceptions import ValidationError
from tenants.guardians import check_appointer, grant_guardianship
from tenants.models import Guardianship
from tenants.roles import STEWARDS
from tenants.times import parse_time


class GuardianshipForm(ServiceForm):
    class Meta:
        model = Guardianship
        fields: ClassVar[list[str]] = []

    user = UserNameField(label="Login of the guardian", help_text="The exact user name.")
    subject = forms.CharField(label="Person", help_text="Id of the person that is acted for.")
    evidence = forms.CharField(
        max_length=2048, widget=forms.Textarea(attrs={"rows": 4, "cols": 80}),
        help_text="The paper that says so: the guardian and the person can read this.",
    )  # fmt: skip
    expires_at = forms.CharField(
        label="Until", required=False, help_text="As 2030-01-31T12:00:00Z; empty for no end."
    )
    pointers: ClassVar[dict[str, str]] = {"scope": "subject", "username": "user"}

    def perform(self, data: dict[str, Any]) -> Any:
        check_appointer(self.caller)
        until = data["expires_at"].strip()
        try:
            deadline = parse_time(until) if until else None
        except ValueError as fault:
            raise ValidationError(str(fault), pointer="/expires_at") from fault
        return grant_guardianship(
            tenant_id=self.caller.tenant_id, username=data["user"].get_username(),
            subject=data["subject"], evidence=data["evidence"], expires_at=deadline,
            actor=self.caller.actor,
        )  # fmt: skip


@admin.register(Guardianship)
class GuardianshipAdmin(TenantModelAdmin):
    """Appointed and ended, never changed: a new mandate for the same two replaces the old one."""

    can_add = can_delete = True
    editors = STEWARDS
    form = GuardianshipForm
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

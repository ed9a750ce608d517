"""The admin's pages of purposes, notices and grants: what an owner decides. Rules: `catalog`."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.http import HttpRequest

from consent import admin_ledger, admin_rights  # noqa: F401  registers its page
from consent.catalog import save_notice, save_purpose
from consent.models import SERVE, Notice, Purpose, PurposeGroupPermission, PurposeUserPermission
from consent.services import grant_purposes
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField, revision_field
from tenants.admin_lists import shown_time
from tenants.services import check_owner


class PurposeForm(ServiceForm):
    class Meta:
        model = Purpose
        fields: ClassVar[list[str]] = []

    slug = forms.CharField(
        max_length=64, help_text="Its name in the API: lower-case letters, digits, hyphens."
    )
    title = forms.CharField(max_length=200, help_text="As people read it.")
    lawful_basis = forms.ChoiceField(
        choices=Purpose.LawfulBasis.choices,
        help_text="Of GDPR article 6(1). Only consent asks the ledger before data is used.",
    )
    on_withdrawal = forms.ChoiceField(
        choices=Purpose.OnWithdrawal.choices,
        help_text="What becomes of the records. Kept ones stay locked until consent comes back;"
        " erase lets housekeeping purge them for good.",
    )
    sharing = forms.BooleanField(
        required=False, help_text="Data goes to others: a browser's Sec-GPC says no to it."
    )
    double_opt_in = forms.BooleanField(
        required=False, help_text="Consent is given with a token that the person was sent."
    )
    is_retired = forms.BooleanField(
        label="Retired", required=False, help_text="Nobody can consent to it any more."
    )
    version = forms.IntegerField(
        label="First notice: version", required=False, min_value=1, initial=1
    )
    locale = forms.CharField(
        label="First notice: language", required=False, max_length=35, initial="en",
        help_text="A BCP 47 tag, as en or de-AT.",
    )  # fmt: skip
    text = forms.CharField(
        label="First notice: text", required=False, strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80}),
        help_text="What people are shown when they are asked. Needed where the basis is consent.",
    )  # fmt: skip
    revision = revision_field()
    pointers: ClassVar[dict[str, str]] = {"notices": "text"}

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        purpose = self.instance
        if purpose.pk:
            for name in ("version", "locale", "text"):
                del self.fields[name]  # further notices have a page of their own
            self.fields["slug"].disabled = True
            for name in ("slug", "title", "lawful_basis", "on_withdrawal", "revision"):
                self.initial[name] = getattr(purpose, name)
            self.initial["sharing"] = bool(purpose.is_sharing)
            self.initial["double_opt_in"] = bool(purpose.is_confirmed)
            self.initial["is_retired"] = purpose.retired_at is not None

    def perform(self, data: dict[str, Any]) -> Purpose:
        check_owner(self.caller)
        names = ("slug", "title", "lawful_basis", "on_withdrawal", "sharing", "double_opt_in")
        entry = {name: data[name] for name in names}
        if data.get("text"):
            notice = {"version": data["version"], "locale": data["locale"], "text": data["text"]}
            entry["notices"] = [notice]
        change = save_purpose(
            tenant_id=self.caller.tenant_id,
            entry=entry,
            revision=data["revision"] if self.instance.pk else None,
            is_retired=data["is_retired"],
            actor=self.caller.actor,
        )
        self.is_unchanged = not change.is_added and not change.is_changed
        return Purpose.objects.get(pk=change.purpose.pk)


@admin.register(Purpose)
class PurposeAdmin(TenantModelAdmin):
    can_add = can_change = True
    form = PurposeForm
    list_display = ("slug", "title", "lawful_basis", "required_version", shown_time("retired_at"))
    purpose_text = (
        "Why data is processed. People consent to a purpose as its notice explains it; every"
        " definition serves one."
    )
    empty_text = "No purpose yet. Add one here, or load a whole catalogue from the definitions."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        if obj is not None and self.is_form(request, obj):
            return [name for name in fields if name not in ("version", "locale", "text")]
        return fields

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        query = f"purpose={obj.pk}"
        found = [
            self.way("Notices", "consentful_consent_notice", "changelist", query=query),
            self.way("Consents", "consentful_consent_consentstate", "changelist", query=query),
        ]
        if self.has_change_permission(request, obj):
            found.insert(
                0, self.way("Publish a notice", "consentful_consent_notice", "add", query=query)
            )
        return [*found, self.trail_of(obj)]


class NoticeForm(ServiceForm):
    class Meta:
        model = Notice
        fields: ClassVar[list[str]] = []

    purpose = forms.ModelChoiceField(queryset=Purpose.objects.none(), empty_label=None)
    version = forms.IntegerField(min_value=1, help_text="A changed text needs a new number.")
    locale = forms.CharField(
        label="Language", max_length=35, initial="en", help_text="A BCP 47 tag, as en or de-AT."
    )
    text = forms.CharField(
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 80}),
        help_text="Published for good: neither text nor version can be changed afterwards.",
    )
    material = forms.BooleanField(
        required=False,
        help_text="The meaning changed: consent to older versions becomes outdated at once.",
    )
    pointers: ClassVar[dict[str, str]] = {"notices": "text"}

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field: Any = self.fields["purpose"]
        field.queryset = Purpose.objects.filter(tenant=self.caller.tenant_id, retired_at=None)

    def perform(self, data: dict[str, Any]) -> Notice:
        check_owner(self.caller)
        return save_notice(
            tenant_id=self.caller.tenant_id,
            purpose_id=data["purpose"].pk,
            entry={name: data[name] for name in ("version", "locale", "text", "material")},
            actor=self.caller.actor,
        )


@admin.register(Notice)
class NoticeAdmin(TenantModelAdmin):
    can_add = True
    form = NoticeForm
    list_display = ("__str__", "purpose", "version", "locale", shown_time("created_at"))
    list_select_related = ("purpose",)
    list_filter = (admin_ledger.PurposeFilter,)
    purpose_text = "The exact texts that people were shown. A published one never changes."
    empty_text = "No notice yet. Nobody can consent to a purpose without one."


class UserGrantForm(ServiceForm):
    class Meta:
        model = PurposeUserPermission
        fields: ClassVar[list[str]] = []

    user = UserNameField(label="Login of the agent", help_text="The exact user name.")
    content_object = forms.ModelChoiceField(
        label="Purpose", queryset=Purpose.objects.none(), empty_label=None
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        field: Any = self.fields["content_object"]
        field.queryset = Purpose.objects.filter(tenant=self.caller.tenant_id, retired_at=None)

    def perform(self, data: dict[str, Any]) -> Any:
        check_owner(self.caller)
        purpose = data["content_object"]
        grant_purposes(
            user_id=data["user"].pk,
            tenant_id=self.caller.tenant_id,
            slugs=[purpose.slug],
            actor=self.caller.actor,
        )
        return PurposeUserPermission.objects.get(user=data["user"], content_object=purpose)


class GroupGrantForm(UserGrantForm):
    class Meta:
        model = PurposeGroupPermission
        fields: ClassVar[list[str]] = []

    user = None  # type: ignore[assignment]  # Django's way to take an inherited field away
    group = forms.CharField(max_length=150, help_text="The exact name of a group of agents.")
    field_order = ("group", "content_object")

    def clean_group(self) -> Group:
        group = Group.objects.filter(name=self.cleaned_data["group"]).first()
        if group is None:
            raise forms.ValidationError("There is no group of this name.")
        return group

    def perform(self, data: dict[str, Any]) -> Any:
        check_owner(self.caller)
        grant, _ = PurposeGroupPermission.objects.get_or_create(
            group=data["group"],
            permission=Permission.objects.get(
                codename=SERVE, content_type__app_label=Purpose._meta.app_label
            ),
            content_object=data["content_object"],
        )
        return PurposeGroupPermission.objects.get(pk=grant.pk)


class GrantAdmin(TenantModelAdmin):
    """Grants are given and taken, never changed."""

    can_add = can_delete = True
    purpose_text = (
        "Which agents may serve which purpose. An agent needs the grant and the person's consent:"
        " neither stands in for the other."
    )
    empty_text = "No agent serves a purpose yet."


@admin.register(PurposeUserPermission)
class PurposeUserPermissionAdmin(GrantAdmin):
    form = UserGrantForm
    list_display = ("user", "content_object")
    list_select_related = ("user", "content_object")


@admin.register(PurposeGroupPermission)
class PurposeGroupPermissionAdmin(GrantAdmin):
    form = GroupGrantForm
    list_display = ("group", "content_object")
    list_select_related = ("group", "content_object")

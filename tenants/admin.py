"""The admin's pages of tenants and of the persons in them. Other modules hold its other pages."""

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError as InvalidForm
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from tenants import (  # noqa: F401  registers their pages
    admin_guardians,
    admin_roles,
    admin_tokens,
    admin_trail,
)
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField
from tenants.admin_lists import shown_time
from tenants.admin_place import CHOSEN, caller_in, tenants_of
from tenants.callers import Caller
from tenants.exceptions import NotFound, ServiceError
from tenants.models import Subject, Tenant
from tenants.scopes import Scope
from tenants.services import create_subject

#: What this app and those above add to a person's page: ways to what they hold about it.
subject_links: list[Callable[[TenantModelAdmin, Subject], Sequence[Link]]] = [
    admin_guardians.links_of_subject
]

#: How logs and other pages name a person without its name: ``subject 17``.
NUMBERED = re.compile(r"(?:subject |#)([0-9]{1,18})", re.ASCII)


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]
    """A tenant is one plain row: the database's own rules are all there are."""

    caller: Caller | None
    conflict = None
    is_unchanged = False

    class Meta:
        model = Tenant
        fields = ("slug", "name", "external_id")

    revision = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["slug"].help_text = "Stands in every address of the API: choose it for good."
        if self.instance.pk:
            self.fields["revision"].initial = self.instance.revision

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.instance.pk:
            stored = Tenant.objects.select_for_update().get(pk=self.instance.pk)
            if stored.revision != data.get("revision"):
                raise InvalidForm(
                    "Somebody changed this tenant since you opened it: it is called"
                    f" {stored.name or stored.slug} now. Open it again."
                )
        self.is_unchanged = not set(self.changed_data) - {"revision"}
        return data


@admin.register(Tenant)
class TenantAdmin(TenantModelAdmin):
    can_add = can_change = True
    is_installation_wide = True
    tenant_column = ""
    form = TenantForm
    list_display = ("slug", "name", shown_time("created_at"), "enter")
    purpose_text = (
        "A tenant is an isolated customer: nothing crosses from one to another. Enter one to work"
        " in it; every other page then shows that tenant alone."
    )
    empty_text = "No tenant is open to you. An owner gives you the role of an operator or owner."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return tenants_of(request.user).order_by(*self.ordering)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if self.is_form(request, obj):
            return ["slug", "name", "external_id", "revision"]
        return super().get_fields(request, obj)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        columns = TenantForm.Meta.fields if self.is_form(request, obj) else []
        return admin.ModelAdmin.get_form(self, request, obj, change, **{**more, "fields": columns})

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.enter_view)
        name = f"{self.opts.app_label}_tenant_enter"
        return [path("<int:tenant_id>/enter/", view, name=name), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        if obj is None or request.user.is_superuser:
            return True
        caller = caller_in(request, obj)
        return caller is not None and bool(caller.roles & self.editors)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        return form.save(commit=False)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not form.is_unchanged:
            obj.save()

    @admin.display(description="work in it")
    def enter(self, obj: Tenant) -> str:
        """A button of the list's own form: no link of another site can choose for the user."""
        address = reverse(
            f"admin:{self.opts.app_label}_tenant_enter",
            args=[obj.pk],
            current_app=self.admin_site.name,
        )
        return format_html(
            '<button type="submit" class="button" formmethod="post" formaction="{}">Enter</button>',
            address,
        )

    def enter_view(self, request: HttpRequest, tenant_id: int) -> HttpResponse:
        """Choose the tenant of this session."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        tenant = Tenant.objects.filter(pk=tenant_id).first()
        if tenant is None or caller_in(request, tenant) is None:
            # The same for both: nobody learns which tenants there are.
            return self.refuse(request, NotFound("No such tenant is open to you."))
        request.session[CHOSEN] = tenant.pk
        self.message_user(request, f"You work in {tenant} now.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))


class SubjectForm(ServiceForm):
    class Meta:
        model = Subject
        fields: ClassVar[list[str]] = []

    external_id = forms.CharField(
        label="Id of the person",
        max_length=200,
        strip=False,
        help_text="As the host knows it; case matters. Events and addresses name it.",
    )
    user = UserNameField(
        label="Login", required=False, help_text="The user name of this person, if it signs in."
    )
    pointers: ClassVar[dict[str, str]] = {"scope": "external_id", "subject": "external_id"}

    def perform(self, data: dict[str, Any]) -> Subject:
        return create_subject(
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            external_id=data["external_id"],
            user=data["user"],
            actor=self.caller.actor,
        )


@admin.register(Subject)
class SubjectAdmin(TenantModelAdmin):
    can_add = True
    form = SubjectForm
    list_display = (
        "external_id", "user", shown_time("created_at"), shown_time("erased_at"),
    )  # fmt: skip
    list_select_related = ("user",)
    search_fields = ("external_id",)
    search_help_text = (
        "The exact id of a person, as in alice or user::alice; its number, as in subject 17; or"
        " the pseudonym of a forgotten one, as in erased-5f0c…"
    )
    purpose_text = (
        "Persons that something is stored about. A person's page leads to its preferences, its"
        " decisions, its rights and its trail. A forgotten person is a pseudonym here: who it was"
        " is not known any more."
    )
    empty_text = "Nobody is known yet. A first decision, a first value or a role makes a person."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        name = search_term.strip().removeprefix("user::")
        if not name:
            return queryset, False
        numbered = NUMBERED.fullmatch(name)
        if numbered:
            # Somebody may be called like that, too.
            return queryset.filter(Q(pk=int(numbered[1])) | Q(external_id=name)), False
        try:
            return queryset.filter(external_id=Scope.of_subject(name).name), False
        except ServiceError as refusal:
            self.message_user(request, refusal.detail, messages.ERROR)
            return queryset.none(), False

    def lead_of(self, obj: Any) -> str:
        if obj.erased_at is None:
            return ""
        return (
            f"Forgotten at {obj.erased_at:%Y-%m-%d %H:%M:%S} UTC. The pseudonym stands in the place"
            " of the name; decisions and times stay, to prove what was lawful."
        )

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found = [link for links in subject_links for link in links(self, obj)]
        if obj.erased_at is not None:
            return [*found, self.trail_of(obj)]  # events name it no longer
        return [*found, admin_trail.trail_of_subject(self, obj.external_id)]

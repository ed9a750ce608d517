"""The admin's pages of the catalogue and of stored values, of which it shows no value."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from preferences.catalog import load_catalog
from preferences.models import Definition, Preference, UndeclaredRule
from tenants.admin import TenantModelAdmin, actor_of, tenant_of
from tenants.documents import read
from tenants.exceptions import ServiceError
from tenants.models import Tenant


class CatalogForm(forms.Form):
    """A catalogue as the command `load_catalog` takes it from a file."""

    catalog = forms.CharField(
        label="Catalogue", strip=False, widget=forms.Textarea(attrs={"rows": 24, "cols": 100})
    )
    is_dry_run = forms.BooleanField(label="Only say what would change", required=False)


@admin.register(Definition)
class DefinitionAdmin(TenantModelAdmin):
    list_display = ("key", "purpose", "scopes", "writers", "retired_at")
    list_select_related = ("purpose",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.load_view)
        name = f"{self.opts.app_label}_definition_load"
        return [path("load/", view, name=name), *super().get_urls()]

    def may_load(self, request: HttpRequest) -> bool:
        """Whether the user may load a catalogue: by Django's permissions on definitions."""
        return admin.ModelAdmin.has_add_permission(
            self, request
        ) and admin.ModelAdmin.has_change_permission(self, request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        more = {"may_load": self.may_load(request), **(extra_context or {})}
        return super().changelist_view(request, more)

    def load_view(self, request: HttpRequest) -> HttpResponse:
        """Load a catalogue, or say what loading it would change."""
        if not self.may_load(request):
            raise PermissionDenied
        tenant = tenant_of(request)
        if tenant is None:
            return self.ask_for_tenant(request)
        form = CatalogForm(request.POST or None, initial={"is_dry_run": True})
        if form.is_valid():
            self._load(request, tenant, form.cleaned_data["catalog"], form.cleaned_data)
        context = {
            **self.admin_site.each_context(request),
            **self.header_of(tenant),
            "title": "Load a catalogue",
            "opts": self.opts,
            "form": form,
        }
        return TemplateResponse(
            request, f"admin/{self.opts.app_label}/definition/load.html", context
        )

    def _load(
        self, request: HttpRequest, tenant: Tenant, text: str, options: dict[str, Any]
    ) -> None:
        is_dry_run = options["is_dry_run"]
        try:
            changes = load_catalog(
                tenant=tenant,
                catalog=read(text.encode()),
                actor=actor_of(request),
                is_dry_run=is_dry_run,
            )
        except ServiceError as refusal:
            where = ", ".join(error.pointer for error in refusal.errors if error.pointer)
            self.message_user(
                request, f"{refusal.detail}{f' ({where})' if where else ''}", messages.ERROR
            )
            return
        lines = changes.lines()
        for line in lines:
            self.message_user(request, line)
        done = "would change" if is_dry_run else "changed"
        self.message_user(request, f"{len(lines)} entries {done}.", messages.SUCCESS)


@admin.register(UndeclaredRule)
class UndeclaredRuleAdmin(TenantModelAdmin):
    list_display = ("kind", "is_allowed", "purpose")
    list_select_related = ("purpose",)


@admin.register(Preference)
class PreferenceAdmin(TenantModelAdmin):
    can_delete = True
    hidden = ("salt", "value", "tags", "metadata", "provenance")
    list_display = ("id", "scope", "key", "purpose", "source", "updated_at", "expires_at")
    list_select_related = ("purpose",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.hidden)

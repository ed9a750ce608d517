"""The admin's pages of the catalogue: definitions, the rules for undeclared keys, loading a file."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from audit.models import Event
from consent.admin_ledger import PurposeFilter
from consent.models import Purpose
from preferences import admin_records  # noqa: F401  registers the pages of stored values
from preferences.catalog import KINDS, load_catalog, save_definition
from preferences.models import Definition, UndeclaredRule, Writer
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import JSONField, Refusable, ServiceForm, revision_field
from tenants.admin_lists import shown_time
from tenants.admin_place import OWNERS, actor_of
from tenants.conf import scope_kinds
from tenants.documents import read
from tenants.exceptions import ServiceError
from tenants.models import Tenant
from tenants.scopes import check_key
from tenants.services import check_owner


class CatalogForm(Refusable, forms.Form):
    """A catalogue as the command `load_catalog` takes it from a file."""

    catalog = forms.CharField(
        label="Catalogue",
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "cols": 100, "class": "consentful-json"}),
        help_text="JSON with purposes, definitions and undeclared. What it leaves out is retired.",
    )
    is_dry_run = forms.BooleanField(label="Only say what would change", required=False)


class DefinitionForm(ServiceForm):
    """One entry of the catalogue, read by the catalogue's own rules."""

    class Meta:
        model = Definition
        fields: ClassVar[list[str]] = []

    key = forms.CharField(max_length=200, strip=False, help_text="Case matters; no slash.")
    purpose = forms.ChoiceField(help_text="What the values serve: its consent gates them.")
    schema = JSONField(
        rows=6, help_text="JSON Schema 2020-12 that every value must fit; true takes anything."
    )
    default = JSONField(
        required=False, help_text="JSON that applies where nothing is stored; empty for none."
    )
    ttl_default = forms.IntegerField(
        label="Lives by default", required=False, min_value=1, help_text="Seconds; empty for none."
    )
    ttl_max = forms.IntegerField(
        label="Lives at most", required=False, min_value=1, help_text="Seconds; empty for ever."
    )
    scopes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, help_text="Kinds of scope where the key applies."
    )
    writers = forms.MultipleChoiceField(
        choices=Writer.choices, widget=forms.CheckboxSelectMultiple, help_text="Who may write it."
    )
    transitions = JSONField(
        required=False,
        rows=3,
        help_text="JSON that names, for each status of a value, those that may follow: empty for none.",
    )
    description = forms.CharField(
        required=False, widget=forms.Textarea(attrs={"rows": 3, "cols": 80})
    )
    is_retired = forms.BooleanField(
        label="Retired", required=False, help_text="Stored values can be read, none can be written."
    )
    revision = revision_field()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        row = self.instance
        fields: dict[str, Any] = self.fields
        purposes = Purpose.objects.filter(tenant=self.caller.tenant_id).order_by("slug")
        fields["purpose"].choices = [
            (one.slug, f"{one.slug} ({one.title})")
            for one in purposes
            if one.retired_at is None or one.pk == row.purpose_id
        ]
        fields["scopes"].choices = [(kind, kind) for kind in (*KINDS, *scope_kinds())]
        if row.pk:
            fields["key"].disabled = True
            for name in (
                "key", "schema", "default", "ttl_default", "ttl_max", "scopes", "writers",
                "transitions", "description", "revision",
            ):  # fmt: skip
                self.initial[name] = getattr(row, name)
            self.initial["purpose"] = row.purpose.slug
            self.initial["is_retired"] = row.retired_at is not None
        else:
            self.initial.setdefault("schema", "true")

    def perform(self, data: dict[str, Any]) -> Definition:
        check_owner(self.caller)
        definition, is_changed = save_definition(
            tenant_id=self.caller.tenant_id,
            entry={
                name: data[name]
                for name in (
                    "key", "purpose", "schema", "default", "ttl_default", "ttl_max", "scopes",
                    "writers", "transitions", "description",
                )
            },
            revision=data["revision"] if self.instance.pk else None,
            is_retired=data["is_retired"],
            actor=self.caller.actor,
        )  # fmt: skip
        self.is_unchanged = not is_changed
        return Definition.objects.get(pk=definition.pk)


@admin.register(Definition)
class DefinitionAdmin(TenantModelAdmin):
    can_add = can_change = True
    form = DefinitionForm
    list_display = ("key", "purpose", "kinds", "who_writes", shown_time("retired_at"))
    list_select_related = ("purpose",)
    list_filter = (PurposeFilter,)
    search_fields = ("key",)
    search_help_text = "An exact key."
    change_list_template = "admin/consentful_preferences/definition/change_list.html"
    purpose_text = (
        "The keys that may be stored: what a value looks like, which purpose it serves, where it"
        " applies, who writes it."
    )
    empty_text = "No key is declared yet. Add one, or load a whole catalogue."

    @admin.display(description="scopes")
    def kinds(self, obj: Any) -> str:
        return ", ".join(obj.scopes)

    @admin.display(description="writers")
    def who_writes(self, obj: Any) -> str:
        return ", ".join(obj.writers)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        try:
            return queryset.filter(key=check_key(search_term)), False
        except ServiceError as refusal:
            self.message_user(request, refusal.detail, messages.ERROR)
            return queryset.none(), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.load_view)
        name = f"{self.opts.app_label}_definition_load"
        return [path("load/", view, name=name), *super().get_urls()]

    def may_load(self, request: HttpRequest) -> bool:
        """Whether the user may load a catalogue: an owner, by Django's permissions on definitions."""
        return (
            self.has_role(request, OWNERS)
            and admin.ModelAdmin.has_add_permission(self, request)
            and admin.ModelAdmin.has_change_permission(self, request)
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        more = {"may_load": self.may_load(request), **(extra_context or {})}
        return super().changelist_view(request, more)

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        purpose = self.way("The purpose", "consentful_consent_purpose", "change", obj.purpose_id)
        return [purpose, *super().links_of(request, obj)]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        form = context["adminform"].form
        if form.conflict is not None:
            context["conflict"] = conflict_of(form, context["original"])
        return super().render_change_form(request, context, *args, **more)

    def load_view(self, request: HttpRequest) -> HttpResponse:
        """Load a catalogue, or say what loading it would change."""
        response: HttpResponse = self.inside(request, lambda more: self._load_page(request, more))
        return response

    def _load_page(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        if not self.may_load(request):
            raise PermissionDenied
        form = CatalogForm(request.POST or None, initial={"is_dry_run": True})
        if form.is_valid():
            self._load(request, more["tenant"], form)
        context = {
            **self.admin_site.each_context(request),
            **more,
            "title": "Load a catalogue",
            "opts": self.opts,
            "form": form,
            "media": self.media,
        }
        return TemplateResponse(
            request, f"admin/{self.opts.app_label}/definition/load.html", context
        )

    def _load(self, request: HttpRequest, tenant: Tenant, form: CatalogForm) -> None:
        is_dry_run = form.cleaned_data["is_dry_run"]
        try:
            changes = load_catalog(
                tenant=tenant,
                catalog=read(form.cleaned_data["catalog"].encode()),
                actor=actor_of(request),
                is_dry_run=is_dry_run,
            )
        except ServiceError as refusal:
            where = ", ".join(error.pointer for error in refusal.errors if error.pointer)
            form.add_error("catalog", f"{refusal.detail}{f' ({where})' if where else ''}")
            return
        lines = changes.lines()
        for line in lines:
            self.message_user(request, line)
        done = "would change" if is_dry_run else "changed"
        self.message_user(request, f"{len(lines)} entries {done}.", messages.SUCCESS)


def conflict_of(form: DefinitionForm, row: Definition) -> dict[str, Any]:
    """Return what was typed beside what is stored now, and let the next attempt replace that."""
    stored = type(form)(instance=Definition.objects.get(pk=row.pk))
    sent: Any = form.data
    rows = []
    for name in form.fields:
        if name == "revision":
            continue
        typed, now = sent.get(name), stored.initial.get(name)
        if isinstance(now, list):
            typed, now = ", ".join(sent.getlist(name)), ", ".join(now)
        elif isinstance(now, bool):
            typed, now = "yes" if typed else "no", "yes" if now else "no"
        elif name in ("schema", "default") and not form.errors.get(name):
            typed = json.dumps(form.cleaned_data.get(name)) if typed else typed
            now = json.dumps(json.loads(now)) if now else now
        if str(typed or "") != str(now or "") and name != "key":
            rows.append({"label": form.fields[name].label or name, "typed": typed, "stored": now})
    data = sent.copy()
    data["revision"] = stored.initial["revision"]
    form.data = data
    return {**author_of(row.tenant_id, row), "rows": rows, "may_retry": True}


def author_of(tenant_id: int, row: Any) -> dict[str, Any]:
    """Return who changed a row last, and when, as the trail says. Inside a unit of work."""
    event = (
        Event.objects.filter(tenant_id=tenant_id, record=row.noun, record_id=row.pk)
        .order_by("-pk")
        .first()
    )
    return {"who": event and event.actor, "at": event and event.at}


@admin.register(UndeclaredRule)
class UndeclaredRuleAdmin(TenantModelAdmin):
    list_display = ("kind", "is_allowed", "purpose")
    list_select_related = ("purpose",)
    purpose_text = "Whether keys without a definition may be stored. A catalogue sets it."
    empty_text = "No rule yet: keys without a definition are refused everywhere."

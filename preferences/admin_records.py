"""The admin's pages of stored values: lists without values, and one record behind the gate."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from audit.models import Event
from preferences.admin_filters import (
    KindFilter,
    ServedPurposeFilter,
    SourceFilter,
    StateFilter,
    with_state,
)
from preferences.admin_forms import NewPreferenceForm, StoredPreferenceForm
from preferences.admin_holds import HoldPages, is_held
from preferences.disclosures import disclose, find_gate, read_disclosure, sign_disclosure
from preferences.models import Preference
from preferences.selectors import get_preference
from preferences.services import delete_preference
from tenants.admin import subject_links
from tenants.admin_base import MOST_SELECTED, Link, TenantModelAdmin
from tenants.admin_lists import shown_time
from tenants.admin_place import actor_of, caller_of, tenant_of
from tenants.admin_search import find_addresses
from tenants.admin_trail import event_links
from tenants.callers import Caller
from tenants.exceptions import NotFound, ServiceError, ValidationError
from tenants.models import Subject, Tenant
from tenants.roles import STEWARDS
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: What is shown of every record, in lines; no value among it.
ABOUT: tuple[Any, ...] = (
    ("scope", "key"),
    ("subject", "purpose"),
    ("source", "actor", "seen_count"),
    (shown_time("created_at"), shown_time("updated_at")),
)
ENDS = shown_time("expires_at")


@admin.register(Preference)
class PreferenceAdmin(HoldPages):
    can_add = can_change = can_delete = True
    editors = STEWARDS
    form = NewPreferenceForm
    hidden = ("salt", "value", "tags", "metadata", "provenance")
    list_display = ("key", "scope", "purpose", shown_time("updated_at"), "ends")
    list_select_related = ("purpose",)
    list_filter = (StateFilter, ServedPurposeFilter, KindFilter, SourceFilter)
    search_fields = ("scope",)
    search_help_text = (
        "An exact scope, or scope/key: user::alice, user::alice/tone, repo::acme/checkout."
    )
    actions = ("delete_selected",)
    change_form_template = "admin/consentful_preferences/preference/change_form.html"
    delete_confirmation_template = "admin/consentful_preferences/preference/delete.html"
    delete_selected_confirmation_template = delete_confirmation_template
    purpose_text = (
        "What is remembered, by address. Values are not listed; a record's page shows one if the"
        " gate lets it, and a person's only with a reason."
    )
    empty_text = "Nothing is stored here yet. Values come from the API, or add one yourself."

    bulk_text = (
        "For more, run the command delete_preferences TENANT SCOPE; for expired records,"
        " purge_expired."
    )

    # Lists -------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_state(super().get_queryset(request)).defer(*self.hidden)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        caller = caller_of(request)
        try:
            found = Q(pk__in=[])
            for scope, key in find_addresses(search_term, me=caller.subject if caller else None):
                found |= Q(scope=str(scope)) if key is None else Q(scope=str(scope), key=key)
        except ServiceError as refusal:
            self.message_user(request, refusal.detail, messages.ERROR)
            return queryset.none(), False
        return queryset.filter(found), False

    @admin.display(description="ends")
    def ends(self, obj: Any) -> str:
        ends = ENDS(obj)[: len("2030-01-31 12:00")]  # the list is narrow, the page has the second
        if is_held(obj):
            return format_html('<span class="consentful-badge held">held</span> {}', ends)
        if obj.expires_at is not None and obj.expires_at <= obj.moment:
            return format_html('<span class="consentful-badge expired">expired</span> {}', ends)
        if obj.archived_at is not None:
            return format_html('<span class="consentful-badge">archived</span> {}', ends)
        return ends

    def lead_of(self, obj: Any) -> str:
        return f"{obj.key} at {obj.scope}"

    # One record --------------------------------------------------------------------------------

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        if request.method == "POST" and "_disclose" in request.POST and object_id:
            # The page as it is, with the value this once: nothing is saved.
            shown: Any = copy(request)
            shown.method = "GET"
            shown.consentful_reason = request.POST.get("reason", "")
            request = shown
        return super().changeform_view(request, object_id, form_url, extra_context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        caller = caller_of(request)
        if row is None or caller is None:
            return row
        row.is_held = is_held(row)
        row.is_expired = row.expires_at is not None and row.expires_at <= row.moment
        row.is_archived = row.archived_at is not None and not row.is_expired
        # For readers: its value shows to nobody.
        row.is_gone = row.is_expired or row.is_archived
        row.record = row.reason = None
        row.place = Scope.parse(row.scope)
        row.gate = None if row.is_gone else find_gate(caller=caller, row=row, scope=row.place)
        row.needs_reason = row.gate is not None or is_of_another(row.place, caller)
        row.may_disclose = (
            not row.is_gone
            and row.needs_reason
            and (row.gate is None or self.may_see_withheld(request))
        )
        given = getattr(request, "consentful_reason", None)
        if given is not None:
            self._disclose(request, row, given)
        elif request.method == "POST":
            proof = request.POST.get("disclosure", "")
            row.reason = read_disclosure(proof, user_id=caller.user_id, row_id=row.pk)
        elif not row.needs_reason and not row.is_gone:
            row.record = get_preference(caller=caller, scope=row.place, key=row.key)
        return row

    def _disclose(self, request: HttpRequest, row: Any, reason: str) -> None:
        caller = caller_of(request)
        if caller is None or not row.may_disclose:
            raise PermissionDenied
        try:
            row.record = disclose(
                caller=replace(caller, reason=reason),
                scope=row.place,
                key=row.key,
                may_see_withheld=self.may_see_withheld(request),
            )
        except ValidationError as refusal:
            row.reason_error = refusal.detail
            return
        row.reason = reason
        row.proof = sign_disclosure(user_id=caller.user_id, row_id=row.pk, reason=reason)

    def may_see_withheld(self, request: HttpRequest) -> bool:
        """Whether the user may see what no consent covers: by a permission of its own."""
        user: Any = request.user
        return bool(user.has_perm(f"{self.opts.app_label}.view_withheld_values"))

    def is_form(self, request: HttpRequest, obj: Any) -> bool:
        if obj is None:
            return True
        if not self.has_change_permission(request, obj):
            return False
        if request.method == "POST":
            # Also where it expired or consent ended meanwhile: what was typed stays on the page.
            return not obj.needs_reason or obj.reason is not None
        return obj.record is not None and obj.gate is None

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            names = ("scope", "key", "value", "expires_at", "tags", "metadata")
            return [(None, {"fields": names})]
        about = ABOUT if self.is_form(request, obj) else (*ABOUT, ENDS)
        groups: list[Any] = [("About this record", {"fields": about})]
        if self.is_form(request, obj):
            fields = ("value", "expires_at", "tags", "metadata", "revision", "disclosure")
            groups.insert(0, (None, {"fields": fields}))
        return groups

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ()
        names = [name for line in ABOUT for name in line]
        return names if self.is_form(request, obj) else [*names, ENDS]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        form = NewPreferenceForm if obj is None else StoredPreferenceForm
        return super().get_form(request, obj, change, **{**more, "form": form})

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        row = context.get("original")
        form = context["adminform"].form
        if row is not None and form.conflict is not None:
            context["conflict"] = form.explain_conflict(request)
        if row is not None and not self.is_form(request, row):
            context["show_save"] = False
            context["shown_record"] = row.record
        return super().render_change_form(request, context, *args, **more)

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found: list[Link] = []
        if obj.subject_id:
            query = urlencode({"q": obj.place.subject})
            state = "consentful_consent_consentstate"
            found = [
                self.way("The person", "consentful_tenants_subject", "change", obj.subject_id),
                self.way("Consents", state, "changelist", query=query),
                *self.hold_links(request, obj),
            ]
        return [*found, self.trail_of(obj)]

    # Changes -----------------------------------------------------------------------------------

    def fenced(self, request: HttpRequest, tenant: Tenant, object_id: str | None) -> Sequence[str]:
        caller = caller_of(request)
        me = caller.subject if caller else None
        if object_id is None and "scope" in request.POST:
            try:
                subject = Scope.parse(request.POST["scope"], me=me, creating=True).subject
            except ServiceError:
                return ()  # the form will say what is wrong with it
            return [] if subject is None else [subject]
        keys = [object_id] if object_id else request.POST.getlist("_selected_action")
        numbers = [
            int(key) for key in keys[:MOST_SELECTED] if key and key.isdecimal() and len(key) < 19
        ]
        with unit_of_work(tenant_id=tenant.pk, actor=actor_of(request)):
            rows = Preference.objects.filter(tenant=tenant, pk__in=numbers, subject__isnull=False)
            return sorted(set(rows.values_list("subject__external_id", flat=True)))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        rows = list(objs)
        return [str(row) for row in rows], {"preferences": len(rows)}, set(), []

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        more = {"reason_needed": True, **(extra_context or {})}
        return super().delete_view(request, object_id, more)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._delete(request, [obj], revision=request.POST.get("revision") or None)

    @admin.action(description="Delete selected preferences", permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Delete the selected records through the service, each with its event."""
        rows = list(queryset)
        if request.POST.get("post"):
            gone = self._delete(request, rows)
            self.log_deletions(request, rows)
            self.message_user(request, f"Deleted: {gone}.", messages.SUCCESS)
            return None
        return self.render_delete_form(
            request,
            {
                **self.admin_site.each_context(request),
                **self.header_of(tenant_of(request)),
                "title": "Delete",
                "opts": self.opts,
                "app_label": self.opts.app_label,
                "rows": rows,
                "media": self.media,
            },
        )

    def _delete(self, request: HttpRequest, rows: list[Any], revision: str | None = None) -> int:
        caller = caller_of(request)
        if caller is None:
            raise PermissionDenied
        reason = request.POST.get("reason", "")
        # In the order of batches: two that lock the same records must not wait in a circle.
        rows = sorted(rows, key=lambda row: (row.scope, row.key))
        places = [Scope.parse(row.scope) for row in rows]
        if any(is_of_another(place, caller) for place in places):
            if not 1 <= len(reason.strip()) <= len(reason) <= 500:
                raise ValidationError("Say why, in 1 to 500 characters: it concerns a person.")
            caller = replace(caller, reason=reason)
        gone = 0
        for row, place in zip(rows, places, strict=True):
            is_seen = revision is not None and not getattr(row, "is_expired", False)
            try:
                delete_preference(
                    caller=caller, scope=place, key=row.key,
                    revisions=[revision] if is_seen and revision else None,
                )  # fmt: skip
            except NotFound:
                continue  # somebody was faster
            gone += 1
        return gone

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        user: Any = request.user
        kind = ContentType.objects.get_for_model(Preference)
        return LogEntry.objects.bulk_create(
            LogEntry(
                user_id=user.pk, content_type=kind, object_id=row.pk,
                object_repr=f"{self.opts.verbose_name} {row.pk}", action_flag=DELETION,
            )
            for row in queryset
        )  # fmt: skip


def is_of_another(scope: Scope, caller: Caller) -> bool:
    """
    Whether the scope is a person's whom the operator is not.

    Not `Caller.discloses`, which leaves agents out: here also a superuser who is one gives a reason.
    """
    return scope.is_personal and not caller.stands_for(scope.subject)


def links_of_subject(page: TenantModelAdmin, subject: Subject) -> Sequence[Link]:
    """Return the ways from a person's page to what is stored about it."""
    scope = str(Scope.of_subject(subject.external_id))
    found, added = urlencode({"q": scope}), urlencode({"scope": scope})
    record = "consentful_preferences_preference"
    if subject.erased_at is not None:
        return [page.way("Preferences", record, "changelist", query=found)]
    return [
        page.way("Preferences", record, "changelist", query=found),
        page.way("Add a preference", record, "add", query=added),
        page.way("Held records", record, "changelist", query=f"{found}&state=held"),
    ]


def links_of_event(page: TenantModelAdmin, event: Event) -> Sequence[Link]:
    """Return the way from an event to the record at its address."""
    if event.scope is None or event.key is None:
        return []
    query = urlencode({"q": f"{event.scope}/{event.key}"})
    return [page.way("The record", "consentful_preferences_preference", "changelist", query=query)]


event_links.append(links_of_event)
subject_links.append(links_of_subject)

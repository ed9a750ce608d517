"""The admin's pages of the trail, which nobody edits. Owners read it, as over HTTP."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.http import urlencode

from audit.models import Event, Seal
from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_lists import Scanned, TextFilter, shown_time
from tenants.admin_place import OWNERS
from tenants.admin_search import find_addresses
from tenants.exceptions import ValidationError
from tenants.scopes import Scope
from tenants.times import parse_time

#: What the apps above add to an event's page: ways to what the event is about.
event_links: list[Callable[[TenantModelAdmin, Event], Sequence[Link]]] = []


class AddressFilter(Scanned, TextFilter):
    title = "scope, or scope/key"
    parameter_name = "address"
    placeholder = "user::alice/tone"

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        text = self.value()
        if not text:
            return queryset
        found = Q(pk__in=[])
        for scope, key in find_addresses(text):
            one = Q(scope=str(scope))
            if key is not None:
                one &= Q(key=key)
            elif scope.subject is not None:
                one |= Q(scope=None, subject=scope.subject)
            found |= one
        return queryset.filter(found)


class ActionFilter(Scanned, TextFilter):
    title = "action"
    parameter_name = "action"
    placeholder = "preference.replaced"

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(action=self.value()) if self.value() else queryset


class ActorFilter(Scanned, TextFilter):
    title = "actor"
    parameter_name = "actor"
    placeholder = "user name"

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(actor=self.value()) if self.value() else queryset


class SinceFilter(Scanned, TextFilter):
    title = "since"
    parameter_name = "since"
    placeholder = "2030-01-31"
    help_text = "A day, or a time as 2030-01-31T12:00:00Z."

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(at__gte=read_moment(self.value())) if self.value() else queryset


class UntilFilter(SinceFilter):
    title = "until"
    parameter_name = "until"
    help_text = "The first moment that no longer counts."

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(at__lt=read_moment(self.value())) if self.value() else queryset


def read_moment(text: str | None) -> datetime:
    """
    Return the moment of a filter; a day stands for its beginning.

    Raises:
        ValidationError: it is neither a day nor a time with an offset.
    """
    text = (text or "").strip()
    try:
        if len(text) == 10:
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return parse_time(text)
    except ValueError as fault:
        raise ValidationError(
            "Write a day as 2030-01-31, or a time as 2030-01-31T12:00:00Z."
        ) from fault


@admin.register(Event)
class EventAdmin(TenantModelAdmin):
    viewers = OWNERS
    hidden = ("target_salt", "actor_salt", "transaction", "cluster")
    linked = ("record", "record_id")
    list_display = (shown_time("at"), "what", "actor", "target", "purpose")
    list_display_links = (shown_time("at"),)
    list_filter = (AddressFilter, ActionFilter, ActorFilter, SinceFilter, UntilFilter)
    purpose_text = (
        "Everything that was changed, refused or disclosed in this tenant, newest first. The"
        " database writes it; nobody edits it, and it holds no values."
    )
    empty_text = "Nothing has happened in this tenant yet."

    @admin.display(description="action")
    def what(self, obj: Any) -> str:
        if obj.outcome == Event.Outcome.DONE:
            return str(obj.action)
        return format_html('<span class="consentful-badge refused">{}</span>', obj.action)

    @admin.display(description="target")
    def target(self, obj: Any) -> str:
        if obj.scope is None:
            return str(obj.subject or "-")
        return str(obj.scope if obj.key is None else f"{obj.scope}/{obj.key}")

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        found = [link for links in event_links for link in links(self, obj)]
        if obj.subject_id:
            person = "consentful_tenants_subject"
            found.append(self.way("The person", person, "change", obj.subject_id))
        return found


@admin.register(Seal)
class SealAdmin(TenantModelAdmin):
    viewers = OWNERS
    list_display = ("sequence", "event", "hash", shown_time("at"))
    list_select_related = ("event",)
    purpose_text = "The chain that proves the trail: each link holds the hash of the one before."
    empty_text = "Nothing is sealed yet. Housekeeping does it, or the command seal_audit."


def trail_of_subject(page: TenantModelAdmin, subject: str) -> Link:
    """Return the way to the events about one person."""
    query = urlencode({"address": str(Scope.of_subject(subject))})
    return page.way("Trail", "consentful_audit_event", "changelist", query=query)

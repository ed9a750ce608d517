"""The admin's pages of legal holds: keeping one record as it is, and ending that. Rules: `holds`."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from preferences.holds import hold, release
from preferences.models import Preference
from tenants.admin_acts import ActForm, act, deadline_field, read_deadline, reason_field
from tenants.admin_base import Link, TenantModelAdmin
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.scopes import Scope

PREFERENCE = "consentful_preferences_preference"


class HoldForm(ActForm):
    """Keep one record as it is: neither changed nor deleted, purged or erased."""

    title = "Hold the record"
    lead = (
        "While it is held, nobody changes or deletes the record, the owner and the person included;"
        " an erasure waits for the hold's end. It can still be read, where the gate lets it."
    )
    button = "Hold it"
    done = "The record is held."

    reason = reason_field("Why it must stay. The person reads it.")
    until = deadline_field("Until")

    def __init__(self, *args: Any, row: Preference, **more: Any) -> None:
        super().__init__(*args, **more)
        self.row = row

    @property
    def about(self) -> dict[str, Any]:
        """Whose record it is, and which."""
        subject = Scope.parse(self.row.scope).subject
        if subject is None:
            raise NotFound("Only a person's record can be held.")
        return {"caller": self.caller, "subject": subject, "key": self.row.key}

    def perform(self) -> Preference:
        return hold(
            **self.about,
            reason=self.cleaned_data["reason"],
            until=read_deadline(self.cleaned_data["until"], "/until"),
        )


class ReleaseForm(HoldForm):
    """End a hold before its time."""

    title = "End the hold"
    lead = "What waited for it, an erasure or a purge, then goes on by itself."
    button = "End it"
    done = "The hold has ended."
    until = None  # type: ignore[assignment]  # Django's way to take an inherited field away

    reason = reason_field("Why it need not stay any more. The trail keeps it.")

    def perform(self) -> Preference:
        release(**self.about, reason=self.cleaned_data["reason"])
        return self.row


class HoldPages(TenantModelAdmin):
    """What the pages of stored values say about holds."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.hold_view)
        return [path("<int:row_id>/hold/", view, name=f"{PREFERENCE}_hold"), *super().get_urls()]

    def hold_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Hold a record, or end its hold."""

        def make(caller: Caller, data: Any) -> HoldForm:
            row = self.get_queryset(request).filter(pk=row_id, subject__isnull=False).first()
            if row is None:
                raise NotFound("There is no such record of a person.")
            form = ReleaseForm if is_held(row) else HoldForm
            return form(data, caller=caller, row=row)

        return act(
            self, request, may=self.has_change_permission(request), make=make,
            follow=lambda form, row: self.link(PREFERENCE, "changelist", query="state=held"),
        )  # fmt: skip

    def hold_links(self, request: HttpRequest, row: Any) -> list[Link]:
        """Return the way to hold a person's record, or to end its hold."""
        if row.subject_id is None or not self.has_change_permission(request):
            return []
        word = "End the hold" if is_held(row) else "Hold"
        return [self.way(word, PREFERENCE, "hold", row.pk)]


def is_held(row: Any) -> bool:
    """Whether a hold keeps the row at its moment, by the database's clock."""
    return row.held_at is not None and (row.held_until is None or row.held_until > row.moment)

"""What a person stops: the use of everything or of one record, and purposes that it objects to."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from consent.models import Restriction
from consent.objections import lift_objection, object_to
from consent.restrictions import lift_restriction, list_restrictions, restrict
from privacy.page_base import Page
from privacy.page_records import RecordPage
from tenants.exceptions import NotFound, ValidationError

#: What a form says.
STOP, ALLOW = "stop", "allow"


class StopPage(Page):
    """Stopping the use of everything that is held (GDPR article 18), and allowing it again."""

    part = "consents"

    def post(self, request: HttpRequest, tenant: str) -> HttpResponse:
        if wants_stop(request):
            restrict(caller=self.caller, subject=self.subject)
            said = _("Stopped: nothing held about you is used until you allow it again.")
        else:
            lift_quietly(self, key=None)
            said = _("Allowed again.")
        messages.success(request, said, fail_silently=True)
        return self.go("consents", anchor="stop")


class StopRecordPage(RecordPage):
    """The same for one record."""

    def post(self, request: HttpRequest, tenant: str, handle: str) -> HttpResponse:
        key = self.find(handle).record.key
        if wants_stop(request):
            restrict(caller=self.caller, subject=self.subject, key=key)
            said = _("Stopped: this entry is kept and not used until you allow it again.")
        else:
            lift_quietly(self, key=key)
            said = _("Allowed again.")
        messages.success(request, said, fail_silently=True)
        return self.go("record", handle)


class ObjectionPage(Page):
    """Objecting to a purpose that rests on somebody's interest (GDPR article 21)."""

    part = "consents"

    def post(self, request: HttpRequest, tenant: str, purpose: str) -> HttpResponse:
        if wants_stop(request):
            object_to(caller=self.caller, subject=self.subject, purpose=purpose)
            said = _("Recorded: you object.")
        else:
            lift_objection(caller=self.caller, subject=self.subject, purpose=purpose)
            said = _("Recorded: you no longer object.")
        messages.success(request, said, fail_silently=True)
        return self.go("consents", anchor=f"purpose-{purpose}")


def wants_stop(request: HttpRequest) -> bool:
    """
    Return whether a form asks to stop, not to allow.

    Raises:
        ValidationError: it says neither.
    """
    said = request.POST.get("use")
    if said not in (STOP, ALLOW):
        raise ValidationError("A form says stop or allow.", pointer="/use")
    return said == STOP


def lift_quietly(page: Page, *, key: str | None) -> None:
    """Let something be used again; where it is already, nothing is left to do."""
    try:
        lift_restriction(caller=page.caller, subject=page.subject, key=key)
    except NotFound:
        return


def find_stop(*, tenant_id: int, subject: str) -> Restriction | None:
    """Return what stops the use of everything, the newest; None where nothing ever did."""
    found = [
        one for one in list_restrictions(tenant_id=tenant_id, subject=subject) if one.key is None
    ]
    return found[-1] if found else None

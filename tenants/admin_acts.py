"""
One deed of an operator on a page of its own: a form, and a service that opens its unit itself.

For what takes a person's exclusive fence, which no page that reads rows may hold: restricting,
holding, erasing. What is done, and who may, belongs to the form's service.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from tenants.admin_base import TenantModelAdmin
from tenants.admin_forms import Refusable
from tenants.admin_place import actor_of, caller_of, tenant_of
from tenants.callers import Caller
from tenants.exceptions import ServiceError, ValidationError
from tenants.times import parse_time
from tenants.units import unit_of_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What stands above a form: where things are now."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


class ActForm(Refusable, forms.Form):
    """What an operator types for one deed, and the deed."""

    #: What the page is called, says above its form, and has on its button; no button, no form.
    title: str = ""
    lead: str = ""
    button: str = ""
    #: What is said afterwards. Names nobody: messages lie in the session.
    done: str = "Done."
    #: Whether there is no way back.
    is_final: ClassVar[bool] = False
    #: What Django's log calls the deed.
    flag: ClassVar[int] = CHANGE
    template: ClassVar[str] = "admin/consentful/act.html"

    def __init__(self, *args: Any, caller: Caller, **more: Any) -> None:
        super().__init__(*args, **more)
        self.caller = caller

    def table(self) -> Table | None:
        """Return what stands above the form. Inside a unit of work."""
        return None

    def is_ready(self) -> bool:
        """Whether what was typed is to be done now; else the page is shown again."""
        return True

    def perform(self) -> Model:
        """
        Do it, outside of any unit of work; return the row that Django's log names by its number.

        Raises:
            ServiceError: whatever the service refuses.
        """
        raise NotImplementedError


def act(
    page: TenantModelAdmin,
    request: HttpRequest,
    *,
    may: bool,
    make: Callable[[Caller, Any], ActForm],
    follow: Callable[[ActForm, Any], str],
) -> HttpResponse:
    """
    Show the page of one deed, or do it.

    Args:
        may: whether the user may at all; a refusal leaves its event.
        make: returns the form for the caller and what was sent. Inside a unit of work.
        follow: returns the address to go on with, after the form and the row of its deed.
    """

    def answer(more: dict[str, Any]) -> HttpResponse:
        tenant, caller = tenant_of(request), caller_of(request)
        if tenant is None or caller is None or not may:
            raise PermissionDenied
        form: ActForm | None = None
        if request.method == "POST":
            with unit_of_work(tenant_id=tenant.pk, actor=actor_of(request)):
                form = make(caller, request.POST)
                is_valid = form.is_valid()
            if is_valid and form.is_ready():
                try:
                    row = form.perform()
                except ServiceError as refusal:
                    form.refuse(refusal)
                else:
                    _log(page, request, form, row)
                    page.message_user(request, form.done, messages.SUCCESS)
                    return HttpResponseRedirect(follow(form, row))
        with unit_of_work(tenant_id=tenant.pk, actor=actor_of(request)):
            form = form or make(caller, None)
            context = {
                **page.admin_site.each_context(request),
                **more,
                "title": form.title,
                "opts": page.opts,
                "form": form,
                "table": form.table(),
                "media": page.media,
            }
            return TemplateResponse(request, form.template, context).render()

    response: HttpResponse = page.inside(request, answer, unit=nullcontext())
    return response


def _log(page: TenantModelAdmin, request: HttpRequest, form: ActForm, row: Model) -> None:
    match form.flag:
        case value if value == ADDITION:
            page.log_addition(request, row, "")
        case value if value == DELETION:
            page.log_deletions(request, [row])
        case _:
            page.log_change(request, row, "")


def reason_field(help_text: str) -> forms.CharField:
    """Return the field of a reason: 1 to 500 characters, as everywhere."""
    return forms.CharField(
        label="Reason", max_length=500, help_text=help_text,
        widget=forms.TextInput(attrs={"size": 60, "autocomplete": "off"}),
    )  # fmt: skip


def evidence_field(help_text: str) -> forms.CharField:
    """Return the field in which an operator says how something is known."""
    return forms.CharField(
        max_length=2048, widget=forms.Textarea(attrs={"rows": 4, "cols": 80}), help_text=help_text
    )


def deadline_field(label: str) -> forms.CharField:
    """Return the field of a moment at which something ends by itself."""
    return forms.CharField(
        label=label, required=False, widget=forms.TextInput(attrs={"size": 32}),
        help_text="As 2030-01-31T12:00:00Z; empty for no end.",
    )  # fmt: skip


def read_deadline(text: str, pointer: str) -> datetime | None:
    """
    Return the moment that was typed, if one was.

    Raises:
        ValidationError: it is none.
    """
    text = text.strip()
    try:
        return parse_time(text) if text else None
    except ValueError as fault:
        raise ValidationError(str(fault), pointer=pointer) from fault

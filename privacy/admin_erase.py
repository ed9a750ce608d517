"""The admin's page on which an operator has somebody forgotten: first what would go, then the deed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib.admin.models import ADDITION

from consent.models import Purpose
from privacy.disclosures import disclose_preview
from privacy.models import Erasure
from privacy.selectors import Preview
from privacy.services import request_erasure
from tenants.admin_acts import ActForm, reason_field
from tenants.callers import Caller
from tenants.exceptions import ServiceError

EVERYTHING, SOME = "everything", "some"


class EraseForm(ActForm):
    """What of a person goes. The button that erases comes with the look at what that is."""

    lead = (
        "There is no way back. Everything: every consent is withdrawn, what is held goes, and a"
        " pseudonym takes the place of the name. Some: records of the keys or purposes that you"
        " name; what was decided about consent stays in force."
    )
    button = "Show what would go"
    done = "Erased, and looked for again. Holders outside the database are asked next."
    is_final = True
    flag = ADDITION
    template = "admin/consentful_privacy/erasure/erase.html"

    extent = forms.ChoiceField(
        label="What goes",
        choices=[(EVERYTHING, "Everything about the person"), (SOME, "Some records alone")],
        initial=EVERYTHING, widget=forms.RadioSelect,
    )  # fmt: skip
    keys = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        help_text="For some: keys, one per line; empty for all keys of the purposes.",
    )  # fmt: skip
    purposes = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple,
        help_text="For some: purposes; none for all purposes of the keys.",
    )  # fmt: skip
    reason = reason_field(
        "Why: the trail keeps it, with your name. Name nobody in it, a ticket's number does."
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    #: What would go, once it was asked for.
    preview: Sequence[Preview] | None = None

    def __init__(self, *args: Any, subject: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.subject = subject
        self.title = f"Forget {subject}"
        field: Any = self.fields["purposes"]
        rows = Purpose.objects.filter(tenant=self.caller.tenant_id).order_by("slug")
        field.choices = [(one.slug, f"{one.slug} ({one.title})") for one in rows]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("extent") == SOME and not (self._keys(data) or data.get("purposes")):
            self.add_error("keys", "Name keys or purposes.")
        return data

    def is_ready(self) -> bool:
        """Whether exactly this was looked at; else look first, as the trail then says."""
        about = self.about()
        token = json.dumps([about["keys"], about["purposes"]])
        if "_erase" in self.data and self.cleaned_data["seen"] == token:
            return True
        try:
            self.preview = disclose_preview(**about)
        except ServiceError as refusal:
            self.refuse(refusal)
            return False
        typed: Any = self.data
        data = typed.copy()
        data["seen"] = token
        self.data = data
        return False

    def about(self) -> dict[str, Any]:
        """Who asks why, about whom, and what of them."""
        data = self.cleaned_data
        is_whole = data["extent"] == EVERYTHING
        caller: Caller = replace(self.caller, reason=data["reason"])
        return {
            "caller": caller,
            "subject": self.subject,
            "keys": None if is_whole else self._keys(data) or None,
            "purposes": None if is_whole else data["purposes"] or None,
        }

    @staticmethod
    def _keys(data: dict[str, Any]) -> list[str]:
        # Not splitlines, which knows more ends of lines than a key may hold.
        lines = data.get("keys", "").replace("\r\n", "\n").split("\n")
        return [line for line in lines if line]

    def perform(self) -> Erasure:
        return request_erasure(**self.about())[0]

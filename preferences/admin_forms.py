"""The form of one stored value. The gate and every rule are those of `services`."""

from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest

from audit.models import Event
from preferences.attempts import NO_DEADLINE, Write
from preferences.disclosures import disclose
from preferences.models import Preference
from preferences.records import Record
from preferences.selectors import get_preference
from preferences.services import put_preference
from preferences.values import (
    check_deadline,
    check_metadata,
    check_revision,
    check_tags,
    check_value,
)
from tenants.admin_forms import JSONField, ServiceForm
from tenants.exceptions import NotFound, ServiceError, StaleRevision, ValidationError
from tenants.scopes import Scope
from tenants.times import format_time

GONE = "The record was archived, expired or was deleted since you opened it. Nothing was saved."


class PreferenceForm(ServiceForm):
    """What a stored value consists of, as an operator types it."""

    class Meta:
        model = Preference
        fields: ClassVar[list[str]] = []

    value = JSONField(
        rows=6,
        help_text='JSON: a text stands between double quotes, "3.12" is a text and 3.12 a number.',
    )
    expires_at = forms.CharField(
        label="Expires at", required=False, widget=forms.TextInput(attrs={"size": 32}),
        help_text="As 2030-01-31T12:00:00Z; empty for what the definition says, or no end.",
    )  # fmt: skip
    tags = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        help_text="One per line.",
    )  # fmt: skip
    metadata = JSONField(rows=3, required=False, help_text="A JSON object; empty for none.")
    pointers: ClassVar[dict[str, str]] = {"ttl_seconds": "expires_at"}

    def _tags(self, data: dict[str, Any]) -> list[str]:
        # Not splitlines, which knows more ends of lines than a tag forbids.
        lines = data["tags"].replace("\r\n", "\n").split("\n")
        return check_tags([line for line in lines if line])

    def _metadata(self, data: dict[str, Any]) -> str:
        return check_metadata({} if data["metadata"] is None else data["metadata"])


class NewPreferenceForm(PreferenceForm):
    """A value at an address where nothing stands."""

    scope = forms.CharField(
        strip=False, max_length=1200, widget=forms.TextInput(attrs={"size": 60}),
        help_text="As user::alice, project::atlas, repo::acme/checkout, global.",
    )  # fmt: skip
    key = forms.CharField(
        strip=False, max_length=800, widget=forms.TextInput(attrs={"size": 60}),
        help_text="Case matters; no slash.",
    )  # fmt: skip
    field_order = ("scope", "key", "value")

    def perform(self, data: dict[str, Any]) -> Preference:
        scope = Scope.parse(data["scope"], me=self.caller.subject, creating=True)
        deadline = data["expires_at"].strip()
        record = put_preference(
            caller=self.caller,
            scope=scope,
            key=data["key"],
            write=Write(
                value=data["value"],
                value_text=check_value(data["value"]),
                tags=self._tags(data),
                metadata_text=self._metadata(data),
                deadline=check_deadline({"expires_at": deadline}) if deadline else NO_DEADLINE,
            ),
        ).record
        return Preference.objects.get(pk=record.id)


class StoredPreferenceForm(PreferenceForm):
    """A new version of a value that the operator has seen."""

    revision = forms.CharField(widget=forms.HiddenInput, required=False)
    disclosure = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        record = getattr(self.instance, "record", None)
        if record is not None:
            self.initial = {**self.initial, **self.initial_of(record)}
            self.initial["disclosure"] = getattr(self.instance, "proof", "")

    @staticmethod
    def initial_of(record: Record) -> dict[str, str]:
        """Return what the fields hold for a stored record: canonical text, nothing parsed."""
        return {
            "value": record.value_text,
            "expires_at": format_time(record.expires_at) if record.expires_at else "",
            "tags": "\n".join(record.tags),
            "metadata": "" if record.metadata_text == "{}" else record.metadata_text,
            "revision": record.revision,
        }

    def perform(self, data: dict[str, Any]) -> Preference:
        row: Any = self.instance
        if row.needs_reason and row.gate is None and row.reason is None:
            raise ValidationError("Say first why you need to see this value.")
        try:
            # The gate comes before anything is compared: "nothing changed" would tell the value.
            stored = get_preference(caller=self.caller, scope=row.place, key=row.key)
        except NotFound as refusal:
            raise StaleRevision(GONE) from refusal
        text = check_value(data["value"])
        tags, metadata = self._tags(data), self._metadata(data)
        was = self.initial_of(stored)["expires_at"]
        deadline = data["expires_at"].strip()
        self.is_unchanged = (
            text == stored.value_text
            and tags == list(stored.tags)
            and metadata == stored.metadata_text
            and deadline == was
        )
        if not self.is_unchanged:
            put_preference(
                caller=self.caller,
                scope=row.place,
                key=row.key,
                write=Write(
                    value=data["value"],
                    value_text=text,
                    mode="replace",
                    revisions=(check_revision(data["revision"]),),
                    tags=tags,
                    metadata_text=metadata,
                    deadline=NO_DEADLINE
                    if deadline == was
                    else check_deadline({"expires_at": deadline or None}),
                ),
            )
        return Preference.objects.get(pk=row.pk)

    def explain_conflict(self, request: HttpRequest) -> dict[str, Any]:
        """
        Return what was typed beside what is stored now, and let the next attempt replace that.

        Seeing what is stored now is a disclosure again, for the reason that was given.
        """
        row: Any = self.instance
        event = (
            Event.objects.filter(tenant_id=self.caller.tenant_id, record=row.noun, record_id=row.pk)
            .order_by("-pk")
            .first()
        )
        found: dict[str, Any] = {"who": event and event.actor, "at": event and event.at}
        try:
            if row.needs_reason:
                caller = replace(self.caller, reason=row.reason)
                stored = disclose(caller=caller, scope=row.place, key=row.key)
            else:
                stored = get_preference(caller=self.caller, scope=row.place, key=row.key)
        except ServiceError as refusal:
            return {**found, "note": refusal.detail}
        now = self.initial_of(stored)
        found["rows"] = [
            {"label": self.fields[name].label or name, "typed": typed, "stored": now[name]}
            for name in ("value", "expires_at", "tags", "metadata")
            if (typed := self.data.get(name, "").replace("\r\n", "\n")) != now[name]
        ]
        typed_before: Any = self.data
        data = typed_before.copy()
        data["revision"] = stored.revision
        self.data = data
        return {**found, "may_retry": True}

"""Forms of the admin whose last check is the change itself, made by a service."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpRequest

from tenants.callers import Caller
from tenants.documents import JSONValue, read
from tenants.exceptions import Forbidden, InvalidJSON, ServiceError, StaleRevision, ValidationError
from tenants.scopes import Scope
from tenants.units import database, record_denied


class Refusable(forms.BaseForm):
    """A form that shows what a service refused at the field, beside what was typed."""

    #: Field for the first part of a refusal's pointer, where the names differ.
    pointers: ClassVar[Mapping[str, str]] = {}
    #: The refusal, where the row changed since the form was loaded.
    conflict: StaleRevision | None = None

    def refuse(self, refusal: ServiceError) -> None:
        """Show a refusal."""
        if isinstance(refusal, StaleRevision):
            self.conflict = refusal
        placed = False
        for error in refusal.errors:
            name, _, rest = error.pointer.strip("/").partition("/")
            name = self.pointers.get(name, name)
            if name in self.fields and not self.fields[name].widget.is_hidden:
                self.add_error(name, f"{rest}: {error.detail}" if rest else error.detail)
                placed = True
        if not placed:
            self.add_error(None, refusal.detail)


class ServiceForm(Refusable, forms.ModelForm):  # type: ignore[type-arg]
    """
    A form of one row, whose last check is the change itself.

    A subclass fills `perform`. The row is never written here.
    """

    caller: Caller
    outcome: Any = None
    is_unchanged = False

    def perform(self, data: dict[str, Any]) -> Any:
        """
        Make the change and return the row.

        Raises:
            ServiceError: whatever the service refuses.
        """
        raise NotImplementedError

    def _post_clean(self) -> None:
        if self.errors:
            return
        try:
            with transaction.atomic(using=database()):
                self.outcome = self.perform(self.cleaned_data)
        except ServiceError as refusal:
            if isinstance(refusal, Forbidden):
                # The page goes on and commits: no unit of work sees the refusal.
                record_denied(refusal, tenant_id=self.caller.tenant_id, actor=self.caller.actor)
            self.refuse(refusal)


class ClosedForm(ServiceForm):
    """What stands behind a page that shows a row and takes no change of it."""

    def perform(self, data: dict[str, Any]) -> Any:
        raise ValidationError("This page takes no changes as it was opened. Open it again.")


class UserNameField(forms.CharField):
    """A login by its exact name: no list of everybody, who may be of another tenant."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            max_length=150,
            widget=forms.TextInput(attrs={"autocomplete": "off", "size": 40}),
            **more,
        )

    def clean(self, value: Any) -> Any:
        name = super().clean(value)
        if not name:
            return None
        users: Any = get_user_model()
        user = users._default_manager.filter(**{users.USERNAME_FIELD: name}).first()
        if user is None:
            raise forms.ValidationError("There is no login of this name.")
        return user


class JSONField(forms.CharField):
    """A JSON document that keeps its types: cleans to what the strict reader makes of it."""

    def __init__(self, *, rows: int = 4, **more: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": rows, "cols": 80, "class": "consentful-json", "spellcheck": "false"}
        )
        super().__init__(strip=False, widget=widget, **more)

    def clean(self, value: Any) -> JSONValue:
        text = super().clean(value)
        if not text.strip():
            if self.required:
                raise forms.ValidationError(self.error_messages["required"], code="required")
            return None
        try:
            return read(text.encode("utf-8", "surrogatepass"))
        except InvalidJSON as refusal:
            hint = ' A text stands between double quotes: "brief".'
            detail = refusal.detail.replace("The body", "This")
            raise forms.ValidationError(detail + hint) from refusal
        except ServiceError as refusal:
            raise forms.ValidationError(refusal.detail) from refusal


def revision_field() -> forms.CharField:
    """Return the hidden field that says which version the operator saw."""
    return forms.CharField(widget=forms.HiddenInput, required=False)


def check_seen(row: Any, revision: str) -> None:
    """
    Refuse a change of a row whose newest version the operator did not see.

    Raises:
        StaleRevision: it changed since.
    """
    if row.revision != revision:
        raise StaleRevision("Somebody changed this since you opened it. Nothing was saved.")


def choose(value: str, choices: Iterable[str], pointer: str) -> str:
    """
    Return the value if it is one of the choices.

    Raises:
        ValidationError: it is not.
    """
    if value not in set(choices):
        raise ValidationError("Choose one of those that are offered.", pointer=pointer)
    return value


def find_named_person(request: HttpRequest, field: str) -> Sequence[str]:
    """Return the person that a form is about to name, for the fence; the form says what is wrong."""
    try:
        return [Scope.of_subject(request.POST[field], creating=True).name]
    except (KeyError, ServiceError):
        return ()

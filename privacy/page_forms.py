"""What a person types into the page, checked for form. What may be stored is for the services."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from privacy.held import Held
from privacy.page_values import WAYS, Way, as_typed, from_typed, lay_out, way_of
from tenants.documents import JSONValue, canonical

_HINTS: dict[str, Any] = {
    "lines": _("One entry per line."),
    "number": _("Digits, with a point before decimals, as in 3.5."),
    "json": _("Written as JSON: texts stand between double quotes."),
}
_FAULTS: dict[str, Any] = {
    "number": _("This is no number. Write digits, with a point before decimals, as in 3.5."),
    "json": _("This is no JSON: check quotes, commas and brackets."),
}


class ValueForm(forms.Form):
    """A new value for one record, and the version that it is to replace."""

    value = forms.CharField(required=False, strip=False, label=_("New value"))
    way = forms.ChoiceField(choices=[(way, way) for way in WAYS], widget=forms.HiddenInput)
    #: Empty where the record is gone and is to be stored again.
    revision = forms.RegexField(r"^[0-9a-f]{32}\Z", required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, held: Held | None) -> None:
        """
        Args:
            held: the record as it stands; None where it is gone, and what was sent decides.
        """
        super().__init__(data, auto_id="%s")
        fields: dict[str, Any] = self.fields
        way, choices = self._way(held)
        field = fields["value"]
        field.widget = _widget(way, choices)
        field.help_text = _HINTS.get(way, "")
        field.error_messages["null_characters_not_allowed"] = _("This cannot be stored.")
        if held is not None:
            self.initial = {
                "way": way,
                "revision": held.record.revision,
                "value": as_typed(held.record.value, way),
            }

    def _way(self, held: Held | None) -> tuple[Way, Any]:
        if held is not None:
            way, choices = way_of(held.record.value, held.schema)
            sent = self.data.get("way")
            # What was typed must still be read as it was meant when the record became another.
            if sent and sent != way and sent in WAYS:
                return sent, ()
            return way, choices
        sent = self.data.get("way")
        return (sent if sent in WAYS else "json"), ()

    def clean(self) -> dict[str, Any]:
        """Read the text as the kind of value that it was typed as."""
        data: dict[str, Any] = super().clean() or {}
        if "value" in data and "way" in data:
            try:
                data["value"] = from_typed(data["value"], data["way"])
            except ValueError:
                self.add_error("value", _FAULTS.get(data["way"], _FAULTS["json"]))
        return data


def _widget(way: Way, choices: Any) -> forms.Widget:
    match way:
        case "choice" if choices:
            return forms.RadioSelect(choices=[(canonical(one), _word(one)) for one in choices])
        case "boolean":
            return forms.RadioSelect(choices=[("true", _("Yes")), ("false", _("No"))])
        case "number":
            return forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        case "text":
            return forms.Textarea(attrs={"rows": 3})
        case "lines":
            return forms.Textarea(attrs={"rows": 5})
        case _:
            return forms.Textarea(attrs={"rows": 8, "class": "code", "spellcheck": "false"})


def _word(value: JSONValue) -> Any:
    """Return a choice in words."""
    shown = lay_out(value)
    words = {"yes": _("Yes"), "no": _("No"), "nothing": _("Nothing"), "empty": _("Empty text")}
    return words.get(shown.kind, shown.text)

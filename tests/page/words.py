"""Every word of the page that is translated: of its templates, of its code, of what stores say."""

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

from django.utils.translation.template import templatize

import consent.personal_data
import preferences.personal_data
import privacy.personal_data
import tenants.personal_data

PRIVACY = Path(privacy.personal_data.__file__).parent
LOCALE = PRIVACY / "locale"
_TEXT = r"""u?('(?:[^'\\\\]|\\\\.)*'|"(?:[^"\\\\]|\\\\.)*")"""
#: How Django writes a template's words for the tools of gettext.
_CALL = re.compile(rf"\bn?(?:gettext|_)\({_TEXT}(?:, {_TEXT})?")

#: One word, or its singular and plural.
type Message = str | tuple[str, ...]


def words_of_the_page() -> set[Message]:
    """Return every message that the page can ask a catalogue for."""
    return {*_in_templates(), *_in_code(), *_in_stores()}


def catalogue_of(language: str) -> gettext.GNUTranslations:
    """Return the compiled catalogue as it is shipped."""
    with (LOCALE / language / "LC_MESSAGES/django.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def _in_templates() -> Iterator[Message]:
    for file in sorted((PRIVACY / "templates/consentful/me").glob("*.html")):
        for found in _CALL.findall(templatize(file.read_text("utf-8"), origin=str(file))):
            texts = tuple(ast.literal_eval(one) for one in found if one)
            yield texts if len(texts) > 1 else texts[0]


def _in_code() -> Iterator[Message]:
    for file in sorted(PRIVACY.glob("page_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="_"), args=[ast.Constant(value=str(text)), *_]):
                    yield text


def _in_stores() -> Iterator[Message]:
    """What an app says of its stores, and why an erasure left something, is English in the apps."""
    for holder in (
        tenants.personal_data, consent.personal_data, preferences.personal_data,
        privacy.personal_data,
    ):  # fmt: skip
        for store in holder.describe():
            yield store.holds
        for name, text in vars(holder).items():
            if name.startswith("_") and name.isupper() and isinstance(text, str):
                yield text

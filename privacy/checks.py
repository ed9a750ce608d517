"""System checks: what a host holds about persons, said wrongly or not at all."""

from collections import Counter
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning, register

from privacy.conf import personal_data
from privacy.holders import belongs_to_person, find_uncovered, load_holder, stores


@register()
def check_holders(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each of the host's holders can be called, and no store has the name of another."""
    found: list[CheckMessage] = []
    for path in personal_data():
        try:
            holder = load_holder(path)
        except ImportError as fault:
            found.append(_wrong(f"{path} cannot be imported: {fault}"))
            continue
        absent = [
            name
            for name in ("describe", "export", "erase", "count")
            if not callable(getattr(holder, name, None))
        ]
        if absent:
            found.append(_wrong(f"{path} has no function {' and no '.join(absent)}."))
    if found:
        return found
    names = Counter(store.name for _, store in stores())
    return [_wrong(f"Two stores are called {name}.") for name, times in names.items() if times > 1]


@register()
def check_coverage(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A host's model that points to a person is shown, exported and erased by somebody."""
    if check_holders(app_configs):
        return []
    mine = [model for model in find_uncovered(apps.get_models()) if belongs_to_person(model)]
    return [
        Warning(
            f"{model._meta.label} points to a person and stands in no store: no export shows it and"
            " no erasure reaches it.",
            hint="Add its store to CONSENTFUL_PERSONAL_DATA.",
            id="consentful.W004",
        )
        for model in mine
    ]


def _wrong(sentence: str) -> Error:
    return Error(
        f"CONSENTFUL_PERSONAL_DATA: {sentence}",
        hint="Name modules or classes with describe, export and erase: see tenants.personal.",
        id="consentful.E012",
    )

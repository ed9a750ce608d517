"""
Whoever holds something about a person: the apps in their order, then the host's own.

Also says which models can name a person and belong to nobody's stores. Reads no row.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from inspect import isclass
from typing import Any, cast

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils.module_loading import import_string

import consent.personal_data
import preferences.personal_data
import privacy.personal_data
import tenants.personal_data
from privacy.conf import personal_data
from tenants.models import Subject
from tenants.personal import PersonalData, Store

#: The apps that hold something, from the floor up.
OURS: tuple[PersonalData, ...] = (
    tenants.personal_data,
    consent.personal_data,
    preferences.personal_data,
    privacy.personal_data,
)

#: Models that can name a person and stand in no store, and why each of them need not.
EXEMPT = {
    "consentful_tenants.Tenant": "Its external_id names an organisation.",
    "consentful_audit.Seal": "Holds hashes of events; what can be read stands in the event.",
    "procrastinate.ProcrastinateJob": "Its only argument is the id of an erasure.",
    "sessions.Session": "Sealed text of the host's sign-in that expires by itself.",
    "guardian.UserObjectPermission": "Stays empty: roles and purposes have tables of their own.",
}

#: Words in a column's name that tell that it may hold who somebody is.
NAMING = frozenset(
    {
        "actor", "behalf", "caller", "email", "login", "person", "phone", "reader", "repr", "scope",
        "subject", "user", "username",
    }
)  # fmt: skip
#: Whole names of columns that do.
NAMING_COLUMNS = frozenset({"external_id", "first_name", "last_name", "args", "session_data"})


def holders() -> tuple[PersonalData, ...]:
    """Return everyone who holds something: our apps in their order, then the host's."""
    return (*OURS, *(load_holder(path) for path in personal_data()))


def host_stores() -> Iterator[tuple[PersonalData, Store]]:
    """Yield the host's own stores with their holders, in the order in which they are asked."""
    for path in personal_data():
        holder = load_holder(path)
        for store in holder.describe():
            yield holder, store


def load_holder(path: str) -> PersonalData:
    """
    Return the module, or an instance of the class, that a setting names.

    Raises:
        ImportError: there is neither.
    """
    try:
        found: Any = import_module(path)
    except ModuleNotFoundError as fault:
        # What the module itself cannot import is its own fault, not another way to read the path.
        if not fault.name or not f"{path}.".startswith(f"{fault.name}."):
            raise
        found = import_string(path)
    return cast(PersonalData, found() if isclass(found) else found)


def stores() -> Iterator[tuple[PersonalData, Store]]:
    """Yield every store with its holder, in the order in which they are shown."""
    for holder in holders():
        for store in holder.describe():
            yield holder, store


def find_uncovered(models: Iterable[type[Model]] | None = None) -> Sequence[type[Model]]:
    """
    Return the models that can name a person, stand in no store and are not exempt.

    Args:
        models: to look at; None for all that are installed.
    """
    installed = set(apps.get_models())
    looked_at = installed if models is None else set(models)
    covered = {model for _, store in stores() for model in store.models}
    return [
        model
        for model in sorted(
            looked_at & _find_naming(looked_at | installed), key=lambda model: model._meta.label
        )
        if model not in covered
        and model._meta.label not in EXEMPT
        # The login itself is the host's, known to all tenants; only its name is held by us.
        and model is not get_user_model()
    ]


def belongs_to_person(model: type[Model]) -> bool:
    """Whether rows of a model point to a person's row."""
    return any(
        field.related_model is Subject for field in model._meta.get_fields() if field.concrete
    )


def _find_naming(models: set[type[Model]]) -> set[type[Model]]:
    """Return those that can name a person: by a column's name, or by pointing to one that can."""
    found: set[type[Model]] = {Subject, get_user_model()}
    found |= {model for model in models if _has_naming_column(model)}
    while True:
        # What is known to name nobody leads to nobody.
        ends = {model for model in found if model._meta.label not in EXEMPT}
        reached = {model for model in models - found if _points_to(model) & ends}
        if not reached:
            return found
        found |= reached


def _has_naming_column(model: type[Model]) -> bool:
    for field in model._meta.concrete_fields:
        name = field.name
        if name in NAMING_COLUMNS or NAMING & set(name.split("_")):
            return True
    return False


def _points_to(model: type[Model]) -> set[type[Model]]:
    return {
        field.related_model
        for field in model._meta.get_fields()
        if field.concrete and isinstance(field.related_model, type)
    }

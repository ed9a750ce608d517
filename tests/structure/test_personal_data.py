"""C060: whatever can name a person is shown, exported and erased by somebody, or says why not."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import models
from django.test.utils import isolate_apps

from preferences.models import Preference
from privacy import checks, holders
from privacy.checks import check_coverage, check_holders
from privacy.holders import EXEMPT, find_uncovered, load_holder, stores
from tenants.models import Subject
from tenants.personal import NOTHING_LEFT, Item, Remainder, Store, Target


def test_every_model_that_can_name_a_person_stands_in_a_store() -> None:
    assert find_uncovered() == []


def test_no_model_stands_in_two_stores() -> None:
    covered = [model for _, store in stores() for model in store.models]
    assert len(covered) == len(set(covered))


@pytest.mark.parametrize("label", EXEMPT)
def test_every_exemption_is_needed_and_gives_its_reason(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert EXEMPT[label].endswith(".")
    others = {name: reason for name, reason in EXEMPT.items() if name != label}
    monkeypatch.setattr(holders, "EXEMPT", others)
    assert label in {model._meta.label for model in find_uncovered()}


def test_stores_have_names_and_plain_words() -> None:
    found = [store for _, store in stores()]
    assert len({store.name for store in found}) == len(found)
    for store in found:
        assert store.name.replace("_", "").isalpha()
        assert store.name.islower()
        assert store.holds.endswith(".")


def make_model(name: str, **columns: Any) -> type[models.Model]:
    """Return a model as an app of a host would define it, known to no registry but its own."""
    with isolate_apps("tests"):
        meta = type("Meta", (), {"app_label": "shop"})
        return type(name, (models.Model,), {"__module__": __name__, "Meta": meta, **columns})


COLUMNS: dict[str, Callable[[], dict[str, Any]]] = {
    "a key to the person": lambda: {"buyer": models.ForeignKey(Subject, models.CASCADE)},
    "a key to a record of theirs": lambda: {"of": models.ForeignKey(Preference, models.CASCADE)},
    "a key to the login": lambda: {"by": models.ForeignKey(get_user_model(), models.CASCADE)},
    "a subject": lambda: {"subject": models.TextField()},
    "a scope": lambda: {"scope": models.TextField()},
    "an actor": lambda: {"last_actor": models.TextField()},
    "on behalf of": lambda: {"on_behalf_of": models.TextField()},
    "a user name": lambda: {"username": models.TextField()},
    "arguments of a job": lambda: {"args": models.JSONField()},
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_a_model_that_nobody_registered_is_noticed(
    columns: Callable[[], dict[str, Any]],
) -> None:
    order = make_model("Order", **columns())
    assert find_uncovered([order]) == [order]


def test_a_model_that_can_name_nobody_is_not() -> None:
    shelf = make_model("Shelf", title=models.TextField(), width=models.IntegerField())
    assert find_uncovered([shelf]) == []


def test_what_points_to_such_a_model_can_name_a_person_too() -> None:
    order = make_model("Order", buyer=models.ForeignKey(Subject, models.CASCADE))
    line = make_model("Line", order=models.ForeignKey(order, models.CASCADE))
    assert find_uncovered([order, line]) == [line, order]


ORDER = make_model("BakeryOrder", buyer=models.ForeignKey(Subject, models.CASCADE))


class Orders:
    """What a bakery holds, said with one small class."""

    name = "orders"

    def describe(self) -> Sequence[Store]:
        return [Store(name=self.name, holds="What you ordered.", models=(ORDER,))]

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        yield from ()

    def erase(self, *, target: Target, store: str) -> Remainder:
        return NOTHING_LEFT

    def count(self, *, target: Target, store: str) -> int:
        return 0


class Twice(Orders):
    """A holder whose store has the name of one of ours."""

    name = "preferences"


class Mute:
    """No holder at all."""


def test_a_host_registers_its_own_with_a_setting(settings: Any) -> None:
    assert find_uncovered([ORDER]) == [ORDER]
    settings.CONSENTFUL_PERSONAL_DATA = [f"{__name__}.Orders"]
    assert check_holders(None) == []
    assert [store.name for _, store in stores()][-1] == "orders"
    assert find_uncovered([ORDER]) == []


def test_a_module_will_do_as_well() -> None:
    assert load_holder("preferences.personal_data") is holders.preferences.personal_data


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (f"{__name__}.Nobody", "cannot be imported"),
        ("nowhere.personal_data", "cannot be imported"),
        (f"{__name__}.Mute", "has no function describe and no export and no erase"),
        (f"{__name__}.Twice", "Two stores are called preferences."),
    ],
)
def test_a_mistake_in_the_setting_is_said_at_start(settings: Any, path: str, sentence: str) -> None:
    settings.CONSENTFUL_PERSONAL_DATA = [path]
    (found,) = check_holders(None)
    assert found.id == "consentful.E012"
    assert sentence in found.msg
    assert check_coverage(None) == []  # one complaint is enough


def test_a_hosts_model_that_points_to_a_person_is_told_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check_coverage(None) == []
    monkeypatch.setattr(checks.apps, "get_models", lambda: [ORDER])
    (found,) = check_coverage(None)
    assert found.id == "consentful.W004"
    assert "BakeryOrder points to a person" in found.msg

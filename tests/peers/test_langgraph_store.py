"""What our LangGraph store promises beyond LangGraph's own tests: revisions, consent, one scope."""

import pytest

from tests.peers.suites import require

require("langgraph.store.base")

from langgraph.store.base import GetOp, PutOp  # noqa: E402

from agents.adapters.langgraph import PreferenceStore  # noqa: E402
from tenants.exceptions import ConsentRequired, PermissionDenied, StaleRevision  # noqa: E402
from tenants.scopes import Scope  # noqa: E402
from tests.factories import CATALOG, change_catalog  # noqa: E402
from tests.peers.conftest import caller_of  # noqa: E402

NS = ("memories", "style")


@pytest.fixture
def store(caller):
    return PreferenceStore(caller)


def test_a_change_in_between_is_never_lost(caller, store):
    store.put(NS, "a", {"v": 1})
    other = PreferenceStore(caller)
    assert other.get(NS, "a").value == {"v": 1}
    store.put(NS, "a", {"v": 2})
    for _ in range(2):  # trying again does not help: looking again does
        with pytest.raises(StaleRevision):
            other.put(NS, "a", {"v": 3})
    assert other.get(NS, "a").value == {"v": 2}
    other.put(NS, "a", {"v": 3})
    assert store.get(NS, "a").value == {"v": 3}


def test_what_a_search_showed_counts_as_seen(caller, store):
    store.put(NS, "a", {"v": 1})
    other = PreferenceStore(caller)
    assert [item.key for item in other.search(("memories",))] == ["a"]
    store.delete(NS, "a")
    store.put(NS, "a", {"v": 1})
    with pytest.raises(StaleRevision):
        other.put(NS, "a", {"v": 2})


def test_what_was_never_seen_is_written_over(caller, store):
    store.put(NS, "a", {"v": 1})
    PreferenceStore(caller).put(NS, "a", {"v": 2})
    assert store.search(NS)[0].value == {"v": 2}


def test_a_query_puts_what_holds_its_words_first(store):
    for key, text in (("a", "Likes green tea"), ("b", "Green bicycle"), ("c", "Owns a dog")):
        store.put(NS, key, {"text": text})
    found = store.search(NS, query="green TEA?")
    assert [(item.key, item.score) for item in found] == [("a", 1.0), ("b", 0.5), ("c", 0.0)]
    assert [item.key for item in store.search(NS, query="green tea", limit=1, offset=1)] == ["b"]
    assert [(item.key, item.score) for item in store.search(NS)] == [
        ("c", None), ("b", None), ("a", None),
    ]  # fmt: skip


def test_a_batch_that_is_refused_changes_nothing(caller, store):
    store.put(NS, "a", {"v": 1})
    other = PreferenceStore(caller)
    other.get(NS, "a")
    store.put(NS, "a", {"v": 2})
    with pytest.raises(StaleRevision):
        other.batch([PutOp(NS, "b", {"v": 1}), PutOp(NS, "a", {"v": 3})])
    assert store.batch([GetOp(NS, "a"), GetOp(NS, "b")])[1] is None
    # Nor does it count as seen.
    store.put(NS, "b", {"v": 9})
    other.put(NS, "b", {"v": 1})


def test_what_has_expired_is_gone_at_once(caller, world, frozen):
    store = PreferenceStore(caller, ttl={"default_ttl": 1})
    store.put(NS, "a", {"v": 1})
    frozen.move(59)
    assert store.get(NS, "a", refresh_ttl=True) is not None
    frozen.move(1)
    assert store.get(NS, "a") is None
    assert store.search(()) == store.list_namespaces() == []
    store.put(NS, "a", {"v": 2})


def test_consent_is_asked_at_each_operation(world, caller, store):
    change_catalog(world.tenant, undeclared={**CATALOG["undeclared"], "user": "support"})
    with pytest.raises(ConsentRequired):
        store.put(NS, "a", {"v": 1})
    world.alice.give("me", "support")
    store.put(NS, "a", {"v": 1})
    world.alice.withdraw("me", "support")
    with pytest.raises(ConsentRequired):
        store.get(NS, "a")
    assert store.search(()) == store.list_namespaces() == []
    store.delete(NS, "a")  # forgetting stays possible


def test_a_namespace_never_leaves_its_scope(world, caller, store, make_world):
    store.put(("user::bob",), "a", {"v": 1})
    assert PreferenceStore(caller_of(world, "bob")).search(()) == []
    assert PreferenceStore(caller_of(make_world(), "alice")).search(()) == []
    for name in ("bob", "operator", "owner"):
        with pytest.raises(PermissionDenied):
            PreferenceStore(caller_of(world, name), scope=Scope.of_subject("alice"))
    with pytest.raises(PermissionDenied):
        PreferenceStore(caller_of(world, "agent"))
    shared = PreferenceStore(caller_of(world, "agent"), scope=Scope.parse("project::x"))
    shared.put(NS, "a", {"v": 7})
    assert [item.value for item in shared.search(())] == [{"v": 7}]
    assert len(store.search(())) == 1


def test_other_records_of_the_scope_are_no_items(world, store):
    world.alice.write("me", "note", {"a": "secret"})
    world.alice.write("me", "ui:theme", "dark")
    assert store.search(()) == []
    assert store.get(("ui",), "theme") is None
    assert store.list_namespaces() == []


def test_the_trail_says_who_wrote(world, store):
    store.put(NS, "a", {"v": 1})
    (event,) = world.events("preference.created")
    assert (event.actor, event.key) == ("alice", "memories.style:a")


def test_names_of_any_kind_stay_apart(store):
    places = [(("a", "b"), "c"), (("a",), "b:c"), (("a:b",), "c"), (("a%3Ab",), "c"), (("e\u0301",), "x"),
              (("\u00e9",), "x"), (("a/b",), "c")]  # fmt: skip
    for number, (namespace, key) in enumerate(places):
        store.put(namespace, key, {"n": number})
    for number, (namespace, key) in enumerate(places):
        assert store.get(namespace, key).value == {"n": number}
    assert {(item.namespace, item.key) for item in store.search((), limit=50)} == set(places)

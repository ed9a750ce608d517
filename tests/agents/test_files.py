"""Text records as files: revisions beneath, one scope around."""

import pytest

from agents.adapters.files import Files, PathRefused
from tenants.exceptions import (
    AlreadyExists,
    ConsentRequired,
    InvalidValue,
    PermissionDenied,
    StaleRevision,
)
from tenants.scopes import Scope
from tests.agents.test_context import caller_of
from tests.factories import CATALOG, change_catalog


def texts(files):
    return {"/".join(place): record.value for place, record in files.list()}


@pytest.fixture
def files(world):
    return Files(caller_of(world, "alice"))


def test_an_edit_that_another_came_before_is_refused(world, files):
    files.create(("a",), "one")
    seen = files.read(("a",))
    other = Files(caller_of(world, "alice"))
    other.replace(other.read(("a",)), "two")
    with pytest.raises(StaleRevision):
        files.replace(seen, "three")
    assert texts(files) == {"a": "two"}


def test_a_model_keeps_no_credential_in_a_file(files):
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    files.create(("a",), "one")
    for act in (
        lambda: files.create(("b",), f"Use {secret} there."),
        lambda: files.create(("password",), "x"),
        lambda: files.create((secret,), "one"),
        lambda: files.replace(files.read(("a",)), secret),
        lambda: files.rename(("a",), ("d", secret)),
    ):
        with pytest.raises(InvalidValue, match="looks like a credential") as refused:
            act()
        assert secret not in str(refused.value)
    assert texts(files) == {"a": "one"}


def test_a_file_that_was_deleted_and_made_anew_is_another(files):
    files.create(("a",), "one")
    seen = files.read(("a",))
    files.delete(("a",))
    files.create(("a",), "one")
    with pytest.raises(StaleRevision):
        files.replace(seen, "two")


def test_a_folder_moves_whole_and_keeps_what_is_attached(world, files):
    files.create(("d", "a"), "one")
    files.create(("d", "e", "b"), "two")
    path = "memories:d:a"
    world.alice.write("me", path, "one", query={"mode": "upsert"}, tags=["x"], ttl_seconds=600)
    before = world.alice.read("me", path).json
    assert files.rename(("d",), ("f", "g"))
    assert texts(files) == {"f/g/a": "one", "f/g/e/b": "two"}
    after = world.alice.read("me", "memories:f:g:a").json
    assert (after["tags"], after["expires_at"]) == (["x"], before["expires_at"])


def test_a_move_that_fails_moves_nothing(files):
    files.create(("d", "a"), "one")
    files.create(("d", "b"), "two")
    files.create(("e",), "three")
    with pytest.raises(AlreadyExists):
        files.rename(("d",), ("e",))
    with pytest.raises(PathRefused):
        files.rename(("d",), ("d", "deeper"))
    assert texts(files) == {"d/a": "one", "d/b": "two", "e": "three"}
    assert not files.rename(("nothing",), ("x",))


def test_a_file_is_no_folder_and_a_folder_no_file(files):
    files.create(("a",), "one")
    with pytest.raises(PathRefused):
        files.create(("a", "b"), "two")
    files.create(("d", "b"), "two")
    with pytest.raises(AlreadyExists):
        files.create(("d",), "three")
    assert files.read(("d",)) is None


def test_names_that_begin_alike_are_other_files(files):
    for place in (("a",), ("ab",), ("a b",)):
        files.create(place, "x")
    assert files.delete(("a",))
    assert sorted(texts(files)) == ["a b", "ab"]


def test_other_records_of_the_scope_are_no_files(world, files):
    world.alice.write("me", "note", "a secret")
    world.alice.write("me", "memories:number", 7)
    assert texts(files) == {}
    files.delete(())
    assert world.alice.read("me", "note").status == 200


def test_a_scope_is_never_left(world, make_world):
    alice, other = Files(caller_of(world, "alice")), make_world()
    alice.create(("a",), "hers")
    assert texts(Files(caller_of(world, "bob"))) == {}
    assert texts(Files(caller_of(other, "alice"))) == {}
    for name in ("bob", "operator", "owner"):
        with pytest.raises(PermissionDenied):
            Files(caller_of(world, name), Scope.of_subject("alice"))
    with pytest.raises(PermissionDenied):
        Files(caller_of(world, "agent"))
    assert texts(Files(caller_of(world, "agent"), Scope.of_subject("alice"))) == {"a": "hers"}


def test_consent_is_asked_at_each_command(world, files):
    change_catalog(world.tenant, undeclared={**CATALOG["undeclared"], "user": "support"})
    with pytest.raises(ConsentRequired):
        files.create(("a",), "one")
    world.alice.give("me", "support")
    files.create(("a",), "one")
    seen = files.read(("a",))
    world.alice.withdraw("me", "support")
    with pytest.raises(ConsentRequired):
        files.read(("a",))
    with pytest.raises(ConsentRequired):
        files.replace(seen, "two")
    assert texts(files) == {}

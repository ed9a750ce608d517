"""Names of any kind become keys, and the same names again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.adapters.files import PathRefused, key_of, path_of, place_of, read_path
from agents.adapters.keys import decode, encode
from tenants.scopes import check_key

#: Whatever has a UTF-8 form, and is short enough for a key.
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@settings(deadline=None)
@given(names)
def test_a_name_survives_being_a_key(name):
    part = encode(name, reserved=".:")
    assert not set("/:") & set(part)
    assert decode(part) == name


@settings(deadline=None)
@given(st.lists(names, min_size=1, max_size=3))
def test_a_path_survives_being_a_key(place):
    key = key_of(tuple(place))
    assert check_key(key[:200].strip() or "k", creating=True)
    assert place_of(key) == tuple(place)


@pytest.mark.parametrize(
    "name",
    [
        "e\u0301",
        "\u212b",
        " a ",
        "a\u00a0",
        "..",
        ".",
        "%41",
        "a/b",
        "a\nb",
        "\u0378",
        "\U000e0041",
    ],
)
def test_names_that_no_key_could_hold_are_escaped(name):
    key = key_of((name,))
    assert check_key(key, creating=True) == key
    assert place_of(key) == (name,)


def test_what_was_not_written_so_is_no_name():
    for key in (
        "memories:a%zz",
        "memories:%41",
        "memories:a%",
        "other:a",
        "memoriesx",
        "memories:%FF",
    ):
        assert place_of(key) is None
    assert place_of("memories") == ()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/memories", ()),
        ("/memories/", ()),
        ("/memories/a//b/./c", ("a", "b", "c")),
        ("/memories/a/../b", ("b",)),
        ("/memories/a:b", ("a:b",)),
    ],
)
def test_a_path_names_one_place(path, place):
    assert read_path(path) == place
    assert read_path(path_of(place)) == place


@pytest.mark.parametrize(
    "path",
    [
        "",
        "memories/a",
        "/memoriesx/a",
        "/etc/passwd",
        "/memories/../a",
        "/memories/a/../../b",
        "//memories/a",
    ],
)
def test_a_path_leads_nowhere_else(path):
    with pytest.raises(PathRefused):
        read_path(path)

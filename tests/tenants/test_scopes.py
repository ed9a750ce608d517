"""What names an address, what does not, and that no two addresses meet."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.exceptions import InvalidKey, InvalidScope, PermissionDenied
from tenants.scopes import Scope, check_key, split_address

# The published cases of the grammar, by their ids.
CASES = [
    ("S01", "global", True),
    ("S03", "repo::acme/checkout", True),
    ("S05", "branch::acme/checkout::feat/add-memory", True),
    ("S07", "", False),
    ("S09", "global::x", False),
    ("S11", "project::", False),
    ("S13", "repo::acme", False),
    ("S15", "repo::/checkout", False),
    ("S17", "repo::acme/checkout::key", False),
    ("S19", "branch::acme/checkout::", False),
    ("S21", "branch::acme::main", False),
    ("S23", "repo:acme/checkout", False),
    ("S25", "project::a/b", False),
    ("S27", "project:: a", False),
    ("S29", "branch::acme/checkout::feat/x/y/z", True),
    ("S31", "project", False),
    ("S33", "global ", False),
]

SCOPES = st.one_of(
    st.just("global"),
    st.text(max_size=20),
    st.builds(
        "{}::{}".format,
        st.sampled_from(["project", "repo", "branch", "user", "team"]),
        st.text(max_size=20) | st.text(alphabet="aAİΣßK:/.* \u0307\u0301é", max_size=12),
    ),
    st.builds(
        "branch::{}/{}::{}".format,
        *[st.text(alphabet="abAİΣ:/.*\u0307\u0301", min_size=1, max_size=6)] * 3,
    ),
)


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenants.scopes.scope_kinds", lambda: ["team"])


@pytest.mark.parametrize(("text", "is_valid"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_published_cases(text: str, is_valid: bool) -> None:
    if is_valid:
        assert str(Scope.parse(text)) == text
    else:
        with pytest.raises(InvalidScope) as refused:
            Scope.parse(text)
        assert refused.value.errors[0].pointer == "/scope"


@pytest.mark.parametrize(
    "text",
    [
        "user::alice\n", "user:: alice", "user::alice ", "user::a::b", "user::a/b", "user::",
        "user::.", "user::..", "user::a\u200b", "user::a\u202e", "user::a\u00ad", "user::a\0",
        "user::\ud800", "user::a\u2028b", "user:::a", "User::alice", "GLOBAL", "Me", " me",
        "unknown::x", "project::a*", "repo::a*/b", "repo::a/b*", "repo::a/b/c", "repo::a/",
        "repo::a/..", "branch::a/b::/x", "branch::a/b::x/", "branch::a/b::x//y",
        "branch::a/b::x/../y", "branch::a/b::x::y", "branch::a/b:::x", "branch::a/b", "team::",
        "team::a/b", "user::" + "x" * 201, "branch::a/b::" + "/".join(["x" * 99] * 3),
        "user::" + "e\u0301" * 10_000, None, 5, True, ["global"], b"global",
    ],
)  # fmt: skip
def test_refused(text: object) -> None:
    with pytest.raises(InvalidScope):
        Scope.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("repo::Acme/Checkout", "repo::acme/checkout"),
        ("project::Shop", "project::shop"),
        ("branch::Acme/Checkout::Feat/X", "branch::acme/checkout::Feat/X"),
        ("branch::acme/checkout::release*", "branch::acme/checkout::release*"),
        ("user::Alice", "user::Alice"),
        ("user::Jose\u0301", "user::Jos\u00e9"),
        ("project::E\u0301", "project::\u00e9"),
        ("project::\u0130", "project::i\u0307"),
        ("project::\u212a", "project::k"),
        ("user::auth0|42", "user::auth0|42"),
        ("user::urn:a", "user::urn:a"),
        ("user::me", "user::me"),
        ("team::Payments", "team::Payments"),
        ("user::" + "x" * 200, "user::" + "x" * 200),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert str(Scope.parse(text)) == canonical


def test_length_is_counted_in_canonical_code_points() -> None:
    name = "/".join(["x" * 143] * 2)
    assert len(str(Scope.parse(f"branch::a/b::{name}"))) == 300
    with pytest.raises(InvalidScope, match="300"):
        Scope.parse(f"branch::a/bc::{name}")


@pytest.mark.parametrize("text", ["project::{}", "repo::{}/a", "repo::a/{}", "branch::a/{}::b"])
def test_a_name_that_grows_when_folded_is_measured_folded(text: str) -> None:
    grown = Scope.parse(text.format("\u0130" * 100))
    assert Scope.parse(str(grown)) == grown
    with pytest.raises(InvalidScope, match="200"):
        Scope.parse(text.format("\u0130" * 101))


@pytest.mark.parametrize("text", ["project::a\u0378", "user::\u0378", "branch::a/b::x/\uffff"])
def test_unassigned_characters_in_scopes_are_refused_on_creation_alone(text: str) -> None:
    assert str(Scope.parse(text)) == text
    with pytest.raises(InvalidScope, match="assigned"):
        Scope.parse(text, creating=True)


def test_a_new_subject_holds_no_unassigned_character() -> None:
    assert Scope.of_subject("a\u0378").subject == "a\u0378"
    for make in (
        Scope.of_subject,
        lambda me, creating: Scope.parse("me", me=me, creating=creating),
    ):
        with pytest.raises(InvalidScope, match="assigned"):
            make("a\u0378", creating=True)


def test_me_is_the_callers_subject() -> None:
    assert Scope.parse("me", me="Alice") == Scope("user", "Alice")
    with pytest.raises(PermissionDenied, match="stands for no person"):
        Scope.parse("me")


def test_whose_scope_it_is() -> None:
    person = Scope.of_subject("alice")
    assert person.is_personal
    assert person.subject == "alice"
    shared = Scope.parse("team::x")
    assert not shared.is_personal
    assert shared.subject is None
    assert Scope.parse("global") == Scope("global", "")


@pytest.mark.parametrize("external_id", ["", "a::b", "a/b", " a", ".", "x" * 201])
def test_of_subject_checks(external_id: str) -> None:
    with pytest.raises(InvalidScope):
        Scope.of_subject(external_id)


@given(SCOPES)
def test_canonical_text_is_its_own_canonical_text(text: str) -> None:
    try:
        scope = Scope.parse(text)
    except (InvalidScope, PermissionDenied):
        return
    assert Scope.parse(str(scope)) == scope
    assert str(scope) == unicodedata.normalize("NFC", str(scope))


@given(SCOPES, st.text(min_size=1, max_size=20))
def test_an_address_divides_where_it_was_joined(text: str, key: str) -> None:
    try:
        scope, key = Scope.parse(text), check_key(key)
    except (InvalidScope, InvalidKey, PermissionDenied):
        return
    assert split_address(f"{scope}/{key}") == (str(scope), key)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("me/theme", ("me", "theme")),
        ("branch::a/b::x/y/key", ("branch::a/b::x/y", "key")),
        ("repo::a/b/::x::y", ("repo::a/b", "::x::y")),
        ("theme", ("", "theme")),
        ("", ("", "")),
        ("me/", ("me", "")),
    ],
)
def test_split_address(path: str, parts: tuple[str, str]) -> None:
    assert split_address(path) == parts


@pytest.mark.parametrize(
    "text",
    [
        "", "theme\n", " theme", "theme ", "\u00a0theme", "theme\u2003", ".", "..", "a/b",
        "a\0", "a\tb", "a\u200b", "a\u202eb", "a\u00adb", "\ud800", "a\u2028b", "a\u2029b",
        "x" * 201, "e\u0301" * 100_000, None, 3, True, b"theme",
    ],
)  # fmt: skip
def test_keys_refused(text: object) -> None:
    with pytest.raises(InvalidKey) as refused:
        check_key(text)
    assert refused.value.errors[0].pointer == "/key"


@pytest.mark.parametrize(
    "text",
    ["python.version", "v1.json", "list", "b::c", "::x::y", "me", "a b", "...", "%", "_", "x" * 200,
     "Theme", "\U0001f600"],
)  # fmt: skip
def test_keys_taken_as_they_are(text: str) -> None:
    assert check_key(text, creating=True) == text


def test_one_key_in_two_spellings() -> None:
    assert check_key("e\u0301" * 200) == "\u00e9" * 200


def test_unassigned_characters_are_refused_on_creation_alone() -> None:
    assert check_key("a\u0378") == "a\u0378"
    with pytest.raises(InvalidKey, match="assigned"):
        check_key("a\u0378", creating=True)

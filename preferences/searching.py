"""Full-text search over the texts that are stored, within what the caller may see."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from preferences.places import own_scopes, persons_of, readable_scopes
from preferences.readings import note_readings
from preferences.records import Record
from preferences.selectors import LISTED, Withheld, list_preferences
from tenants.callers import Caller
from tenants.exceptions import InvalidScope, ValidationError
from tenants.scopes import Scope
from tenants.units import store, unit_of_work

#: Characters of what is searched for.
MAX_QUERY_LENGTH = 200
#: Stands behind an owner for every repository of it: no repository has this name.
_EVERY = "/*"
#: Stands for what is nobody's.
_SHARED = "*"


@dataclass(frozen=True, slots=True)
class Owner:
    """All repositories of one owner, ``repo::acme/*``: a place to search, nothing to write to."""

    name: str

    def __str__(self) -> str:
        return f"repo::{self.name}{_EVERY}"


#: Where one may search: in an exact scope, or owner-wide.
type Place = Scope | Owner


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that holds the words, and how well it fits, from 0 to 1."""

    record: Record
    score: float

    def as_json(self) -> str:
        """Return the record with its score as JSON text."""
        return f'{self.record.as_json()[:-1]}, "score": {self.score!r}}}'


def parse_place(text: object, *, me: str | None = None) -> Place:
    """
    Return the scope that `text` names, or every repository of an owner.

    Raises:
        InvalidScope: it is neither.
        PermissionDenied: `text` is ``me`` and the caller stands for no person.
    """
    if isinstance(text, str) and text.startswith("repo::") and text.endswith(_EVERY):
        # The owner's name follows the rules of a repository's, and folds like it.
        repository = Scope.parse(f"{text.removesuffix(_EVERY)}/x")
        return Owner(repository.name.removesuffix("/x"))
    return Scope.parse(text, me=me)


def check_query(text: object) -> str:
    """
    Return what is searched for.

    Raises:
        ValidationError: no string of 1 to 200 characters that can be stored.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_QUERY_LENGTH:
        raise ValidationError(f"Search for 1 to {MAX_QUERY_LENGTH} characters.", pointer="/query/q")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise ValidationError("A search holds no control character.", pointer="/query/q")
    return text


def search_preferences(
    *, caller: Caller, query: str, scopes: Sequence[Place] | None = None, limit: int = 50
) -> tuple[list[Hit], list[Withheld]]:
    """
    Return the live records whose text holds the words of `query`, the best first, and what the gate
    withholds in these scopes, whether or not it would have matched.

    Words are compared without regard to case, as they are written: no other form of a word is found.
    Those in double quotes must follow each other, ``or`` allows either, a minus leaves out. Opens its
    own unit of work.

    Args:
        scopes: where to look, see `parse_place`; those that the caller may not read are left out.
            None: the caller's own scope and all that is shared.

    Raises:
        ValidationError: the query is empty, too long, or holds control characters.
        InvalidScope: an agent without a person names no scope.
    """
    query = check_query(query)
    if scopes is None:
        exact = own_scopes(caller)
        places = [*map(str, exact), _SHARED]
    elif scopes:
        exact = readable_scopes(caller, [one for one in scopes if isinstance(one, Scope)])
        places = [*map(str, exact), *(str(one) for one in scopes if isinstance(one, Owner))]
    else:
        raise InvalidScope("Name at least one scope.", pointer="/query/scope")
    # Stored text stays as it was written: either form of a letter finds itself.
    forms = sorted({unicodedata.normalize(form, query) for form in ("NFC", "NFD")})
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor, subjects=persons_of(exact)):
        with store().cursor() as cursor:
            cursor.execute(
                f"SELECT found.score, {LISTED}"  # noqa: S608  constant text
                " FROM consentful_search(%s, %s, %s::text[], %s::text[], %s) found"
                " JOIN consentful_preference p ON p.tenant_id = %s AND p.id = found.record"
                " LEFT JOIN consentful_purpose u ON u.tenant_id = p.tenant_id AND u.id = p.purpose_id"
                " ORDER BY found.score DESC, p.updated_at DESC, p.id DESC",
                [caller.tenant_id, caller.agent_id, places, forms, limit, caller.tenant_id],
            )
            rows = cursor.fetchall()
        # Asked without the words: that one of them matched would tell what is withheld.
        personal = [scope for scope in exact if scope.is_personal]
        _, withheld = list_preferences(caller=caller, scopes=personal, most=0)
    hits = [Hit(Record.from_row(row, slug), score) for score, *row, slug in rows]
    note_readings(caller, [hit.record for hit in hits])
    return hits, withheld

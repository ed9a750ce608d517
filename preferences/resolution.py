"""Which value applies: scopes in the caller's order, then the default. Pure; reads nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from preferences.records import Record
from tenants.exceptions import InvalidScope
from tenants.scopes import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """What applies for one key: a stored record, or the definition's default."""

    key: str
    record: Record | None
    default_text: str | None
    shadows: Sequence[str]


def resolve(
    scopes: Sequence[str],
    records: Mapping[tuple[str, str], Record],
    defaults: Mapping[str, str],
    keys: Sequence[str],
) -> Sequence[Effective]:
    """
    Return what applies for each key, in the order of `keys`; a key with nothing is absent.

    Args:
        scopes: canonical texts, the most special one first. A stored null shadows, too.
        records: the readable ones by (scope, key).
        defaults: JSON text by key.
    """
    found = []
    for key in keys:
        stored = [records[scope, key] for scope in scopes if (scope, key) in records]
        if stored:
            found.append(
                Effective(
                    key=key,
                    record=stored[0],
                    default_text=None,
                    shadows=[record.scope for record in stored[1:]],
                )
            )
        elif key in defaults:
            found.append(Effective(key=key, record=None, default_text=defaults[key], shadows=[]))
    return found


def default_order(
    *,
    subject: str | None = None,
    repository: str | None = None,
    branch: str | None = None,
    project: str | None = None,
) -> list[Scope]:
    """
    Return the scopes of a question in the usual order, the most special one first.

    A person, then a branch, its repository, the project, and what holds everywhere; what is not
    named is left out. An offer: whoever asks may order scopes as it likes.

    Args:
        subject: external id of the person.
        repository: ``{owner}/{name}``.
        branch: of the repository.
        project: its name.

    Raises:
        InvalidScope: a part breaks the grammar, or a branch comes without its repository.
    """
    if branch is not None and repository is None:
        raise InvalidScope("A branch belongs to a repository: name that, too.")
    named = [
        None if subject is None else f"user::{subject}",
        None if branch is None else f"branch::{repository}::{branch}",
        None if repository is None else f"repo::{repository}",
        None if project is None else f"project::{project}",
        "global",
    ]
    return [Scope.parse(text) for text in named if text is not None]

"""Which value applies: scopes in the caller's order, then the default. Pure; reads nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from preferences.records import Record


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

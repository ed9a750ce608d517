"""
Whether personal data may be used just now: not while a restored database awaits its erasures.

How that is found out belongs in `privacy`, which adds its question here when it is installed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tenants.exceptions import StoreUnavailable

#: Each tells whether the database is behind what must not return. Asked often: they remember.
questions: list[Callable[[], bool]] = []

_catching_up: ContextVar[bool] = ContextVar("consentful_catching_up", default=False)


def check_current() -> None:
    """
    Refuse whatever reads or writes about persons while the database is an older copy.

    Raises:
        StoreUnavailable: it was restored, and what was forgotten since is in it again.
    """
    if not _catching_up.get() and any(is_behind() for is_behind in questions):
        raise StoreUnavailable(
            "The database was restored and holds what was erased since: run reapply_erasures.",
            headers={"Retry-After": "60"},
        )


@contextmanager
def catching_up() -> Iterator[None]:
    """Let the block work on persons although the database is behind: it brings it up to date."""
    token = _catching_up.set(True)
    try:
        yield
    finally:
        _catching_up.reset(token)

"""Keyset pages: signed cursors that are bound to one tenant, one route and its filters."""

from collections.abc import Callable, Sequence
from typing import Any

from django.core import signing
from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict

from tenants.exceptions import ValidationError

MOST = 200
DEFAULT = 50


def read_limit(parameters: MultiValueDict[str, str]) -> int:
    """
    Return `?limit=`, 1-200, 50 where it is not given.

    Raises:
        ValidationError: anything else.
    """
    text = parameters.get("limit", str(DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST):
        raise ValidationError(f"A limit is a number from 1 to {MOST}.", pointer="/query/limit")
    return int(text)


def read_cursor(request: HttpRequest, parameters: MultiValueDict[str, str]) -> int:
    """
    Return the id after which the page starts; 0 for the first one.

    Raises:
        ValidationError: the cursor was altered, or belongs to another tenant, route or filter.
    """
    return int(read_position(request, parameters) or 0)


def read_position(request: HttpRequest, parameters: MultiValueDict[str, str]) -> Any:
    """
    Return the position after which the page starts, as `id_of` gave it; None for the first one.

    Raises:
        ValidationError: the cursor was altered, or belongs to another tenant, route or filter.
    """
    text = parameters.get("cursor")
    if text is None:
        return None
    try:
        return signing.loads(text, salt=_salt(request, parameters))
    except signing.BadSignature as fault:
        raise ValidationError(
            "This cursor is not one of this list: start without it.", pointer="/query/cursor"
        ) from fault


def render_page[T](
    request: HttpRequest,
    parameters: MultiValueDict[str, str],
    rows: Sequence[T],
    limit: int,
    *,
    id_of: Callable[[T], Any],
    render: Callable[[T], str],
    more: str = "",
) -> str:
    """
    Return the list envelope as JSON text.

    Args:
        id_of: an id, or another position that JSON can write, to go on after.
        rows: up to `limit` + 1 of them; the last one only tells that there is another page.
        more: further members of the envelope, as JSON text that starts with a comma.
    """
    url: str = "null"
    if len(rows) > limit:
        rows = rows[:limit]
        query = parameters.copy()
        query["cursor"] = signing.dumps(id_of(rows[-1]), salt=_salt(request, parameters))
        url = f'"{request.build_absolute_uri(request.path)}?{query.urlencode()}"'  # type: ignore[attr-defined]
    results = ", ".join(render(row) for row in rows)
    return f'{{"results": [{results}], "next": {url}, "previous": null{more}}}'


def envelope(results: Sequence[Any]) -> dict[str, Any]:
    """Return a list that is always whole in the list envelope."""
    return {"results": results, "next": None, "previous": None}


def _salt(request: HttpRequest, parameters: MultiValueDict[str, str]) -> str:
    filters = sorted(
        (name, value)
        for name, values in parameters.lists()
        for value in values
        if name not in ("cursor", "limit", "reason")
    )
    return f"consentful.cursor:{request.path}:{filters!r}"

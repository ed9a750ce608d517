"""Moments as text: RFC 3339 in, UTC with microseconds out."""

import re
from datetime import UTC, datetime, timedelta, timezone

# ASCII digits alone: \d takes those of every script, and $ a trailing newline.
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
#: Longer fractions say nothing that a clock can tell.
_MAX_LENGTH = 100


def parse_time(text: object) -> datetime:
    """
    Return the moment that `text` names, in UTC.

    Args:
        text: date, ``T``, time and an offset, as in ``2030-01-31T12:00:00+01:00`` (RFC 3339,
            section 5.6). Digits past the microsecond are cut off.

    Raises:
        ValueError: with a sentence; also for leap seconds and what falls out of the years 1 to
            9999 in UTC.
    """
    if not isinstance(text, str):
        raise ValueError("A time is a string.")
    match = _RFC3339.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(
            "A time is written as RFC 3339 says, with an offset: 2030-01-31T12:00:00Z."
        )
    *moment, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, moment)
    microsecond = int((fraction or "")[:6].ljust(6, "0"))
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError("The offset of a time is at most 23:59.")
    try:
        local = datetime(
            year, month, day, hour, minute, second, microsecond,
            tzinfo=timezone(-offset if sign == "-" else offset),
        )  # fmt: skip
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("The time is on no calendar between the years 1 and 9999.") from None


def format_time(moment: datetime) -> str:
    """
    Return the moment as RFC 3339 in UTC, with ``Z`` and six digits of the second.

    Raises:
        ValueError: the moment is naive.
    """
    if moment.tzinfo is None:
        raise ValueError("A naive datetime names no moment.")
    # Not strftime, which leaves out the leading zeros of a year on some systems.
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{naive.isoformat(timespec='microseconds')}Z"

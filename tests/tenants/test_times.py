"""Times as text: RFC 3339 in, UTC out."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.times import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00.000000Z"),
        ("2030-01-31t12:00:00z", "2030-01-31T12:00:00.000000Z"),
        ("2030-01-31T12:00:00+01:30", "2030-01-31T10:30:00.000000Z"),
        ("2030-01-31T23:30:00-01:00", "2030-02-01T00:30:00.000000Z"),
        ("2030-01-31T12:00:00-00:00", "2030-01-31T12:00:00.000000Z"),
        ("2030-01-31T12:00:00.5Z", "2030-01-31T12:00:00.500000Z"),
        ("2030-01-31T12:00:00.1234569Z", "2030-01-31T12:00:00.123456Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000000Z"),
    ],
)
def test_times(text: str, formatted: str) -> None:
    assert format_time(parse_time(text)) == formatted


@pytest.mark.parametrize(
    "text",
    [
        "", "2030-01-31", "2030-01-31T12:00:00", "2030-01-31 12:00:00Z", "2030-01-31T12:00Z",
        "2030-01-31T12:00:00Z\n", " 2030-01-31T12:00:00Z", "2030-01-31T12:00:00.Z",
        "2030-01-31T12:00:00+0100", "2030-01-31T12:00:00+01", "2030-01-31T12:00:00+24:00",
        "2030-01-31T12:00:00+01:60", "2030-02-30T00:00:00Z", "2030-13-01T00:00:00Z",
        "2030-01-31T24:00:00Z", "2030-01-31T12:00:60Z", "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "20300131T120000Z", "2030-W05-4T12:00:00Z", "٢٠٣٠-01-31T12:00:00Z",
        "2030-01-31T12:00:00." + "1" * 100_000 + "Z", "\ud800", None, 1893456000, True,
    ],
)  # fmt: skip
def test_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$|Z\.$"):
        parse_time(text)


@given(
    st.datetimes(timezones=st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))))
)
def test_round_trip(moment: datetime) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return
    assert parse_time(format_time(moment)) == moment
    assert parse_time(moment.isoformat()) == moment


def test_a_naive_time_is_no_moment() -> None:
    with pytest.raises(ValueError, match="naive"):
        format_time(datetime(2030, 1, 1))  # noqa: DTZ001

"""What the environment says, and what is refused: always one line, and never a value."""

import json
from pathlib import Path

import pytest

from config.environment import is_loopback
from tests.config.processes import run

SHOW = """
import json
from django.conf import settings
database = settings.DATABASES["default"]
print(json.dumps({
    "database": {name: database.get(name) for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")},
    "options": database["OPTIONS"],
    "role": settings.CONSENTFUL_RUNTIME_ROLE,
    "is_development": settings.IS_DEVELOPMENT,
    "debug": settings.DEBUG,
    "fallbacks": settings.SECRET_KEY_FALLBACKS,
    "secure": [settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE],
    "hosts": settings.ALLOWED_HOSTS,
    "origins": settings.CSRF_TRUSTED_ORIGINS,
    "address": [settings.HOST, settings.PORT, settings.WEB_CONCURRENCY],
}, default=str))
"""

PRODUCTION = {
    "SECRET_KEY": "a-long-secret-that-nobody-knows-0123456789-abcdefghijklmnop",
    "ALLOWED_HOSTS": "consentful.example, .tenants.example",
}


def show(**environment: str) -> dict[str, object]:
    finished = run(
        "-c", SHOW, DJANGO_SETTINGS_MODULE="config.settings", DATA_DIR="unused", **environment
    )
    assert finished.returncode == 0, finished.stderr
    return dict(json.loads(finished.stdout))


def test_nothing_set_means_development_on_loopback() -> None:
    shown = show()
    assert shown["is_development"] is True
    assert shown["debug"] is False
    assert shown["secure"] == [False, False]
    assert shown["address"] == ["127.0.0.1", 8000, 1]
    assert shown["role"] == "consentful"
    assert shown["options"] == {
        "embedded": str(Path("unused").absolute()),
        "owner": {"user": "consentful_owner"},
        "prepare_threshold": 1,
    }


def test_keys_from_before_still_open_what_they_signed() -> None:
    assert show()["fallbacks"] == []
    assert show(SECRET_KEY_FALLBACKS="last-year, the-year-before")["fallbacks"] == [
        "last-year",
        "the-year-before",
    ]


def test_production_has_secure_cookies_and_its_own_origins() -> None:
    shown = show(**PRODUCTION)
    assert shown["is_development"] is False
    assert shown["secure"] == [True, True]
    assert shown["hosts"] == ["consentful.example", ".tenants.example"]
    assert shown["origins"] == ["https://consentful.example", "https://*.tenants.example"]


def test_one_of_the_two_leaves_it_development() -> None:
    for name in PRODUCTION:
        shown = show(**{name: PRODUCTION[name]})
        assert shown["is_development"] is True


def test_one_url_is_one_login() -> None:
    shown = show(DATABASE_URL="postgresql://me:se%40cret@db.example:6543/store?sslmode=verify-full")
    assert shown["database"] == {
        "NAME": "store",
        "USER": "me",
        "PASSWORD": "se@cret",
        "HOST": "db.example",
        "PORT": "6543",
    }
    assert shown["options"] == {"connect_timeout": 5, "sslmode": "verify-full"}
    assert shown["role"] is None


def test_statements_are_prepared_where_somebody_says_that_they_may_be() -> None:
    shown = show(DATABASE_URL="postgresql:///store?user=me", PREPARED_STATEMENTS="1")
    assert shown["options"] == {"connect_timeout": 5, "prepare_threshold": 1}


def test_two_urls_are_two_logins() -> None:
    shown = show(
        DATABASE_URL="host=/var/run/one,/two user=me dbname=store password=mine",
        DATABASE_OWNER_URL="postgresql:///store?host=/a%20folder&user=boss&connect_timeout=9",
    )
    assert shown["options"] == {
        "connect_timeout": 5,
        "owner": {"user": "boss", "host": "/a folder", "connect_timeout": "9"},
    }
    assert shown["role"] == "me"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "http"),
        ("WEB_CONCURRENCY", "0"),
        ("DEBUG", "canary"),
        ("DATABASE_URL", "sqlite:///canary.db"),
        ("DATABASE_URL", "postgresql://me:canary@host/"),
        ("DATABASE_URL", "postgresql://me:canary@host/store?canary=1"),
        ("DATABASE_OWNER_URL", "postgresql://boss:canary@host/store"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line_without_it(name: str, value: str) -> None:
    finished = run("manage.py", "check", DATA_DIR="unused", **{name: value})
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.startswith(name)
    assert finished.stderr.count("\n") == 1
    assert "canary" not in finished.stderr


def test_two_databases_are_refused() -> None:
    finished = run(
        "manage.py",
        "check",
        DATABASE_URL="postgresql://me@host/store",
        DATABASE_OWNER_URL="postgresql://boss@host/other",
    )
    assert finished.returncode == 1
    assert "the same database" in finished.stderr


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("consentful.example", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("set_value", [None, *PRODUCTION])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_development_is_not_exposed(host: str, set_value: str | None, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    given = {set_value: PRODUCTION[set_value]} if set_value else {}
    finished = run("manage.py", "serve", HOST=host, DATA_DIR=str(directory), **given)
    assert finished.returncode == 1
    assert "set SECRET_KEY and ALLOWED_HOSTS" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not directory.exists()


def test_a_check_of_the_deployment_finds_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    finished = run(
        "manage.py",
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        DATA_DIR=str(directory),
        **PRODUCTION,
    )
    assert finished.returncode == 0, finished.stderr
    assert not directory.exists(), "no database is started for what needs none"


def test_an_unreachable_database_is_told_with_the_cure() -> None:
    finished = run("manage.py", "migrate", DATABASE_URL="postgresql://me:canary@127.0.0.1:1/store")
    assert finished.returncode == 1
    assert "The database cannot be reached" in finished.stderr
    assert "DATABASE_URL names it" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "canary" not in finished.stderr

"""The service behind PgBouncer in transaction mode, with two connections to the server."""

import configparser
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection

from config.environment import read_database
from config.postgresql.base import DatabaseWrapper
from tests.conftest import connect, run_service
from tests.factories import make_persona, make_tenant
from tests.pooler import (
    CONFIGURATION,
    PGBOUNCER,
    SERVER_CONNECTIONS,
    Pooler,
    as_url,
    run_pooler,
)

pytestmark = [
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed here"),
    pytest.mark.skipif(
        not connection.settings_dict["OPTIONS"].get("owner"), reason="one login does everything"
    ),
]

PAGE = Path(settings.BASE_DIR) / "docs/how-to/run-behind-a-pooler.md"
CLIENTS = 12


def parameters_of(login: str) -> dict[str, Any]:
    """Return what libpq needs for a login, without Django's own part."""
    with connect(login) as connected:
        found = connected.info.get_parameters() | {"password": connected.info.password}
    return {name: found[name] for name in ("host", "port", "user", "dbname", "password")
            if found.get(name)}  # fmt: skip


@pytest.fixture(scope="module")
def pooler(database: str, django_db_blocker: Any) -> Iterator[Pooler]:
    with django_db_blocker.unblock():
        runtime = parameters_of("runtime")
    with run_pooler(runtime) as running:
        yield running


@pytest.fixture
def pooled(pooler: Pooler, database: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a service behind the pooler, whose owner goes past it."""
    environment = {
        "DATABASE_URL": pooler.url(parameters_of("runtime")["user"], database),
        "DATABASE_OWNER_URL": as_url(parameters_of("owner")),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.fixture
def wrapper(pooled: dict[str, str]) -> Iterator[DatabaseWrapper]:
    """Django's connection, made as the service makes it from its environment."""
    defaults = connection.settings_dict
    wrapper = DatabaseWrapper({**defaults, **read_database(settings.DATA_DIR)})
    yield wrapper
    wrapper.close()


def ask(wrapper: DatabaseWrapper, query: str) -> Any:
    with wrapper.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def test_limits_of_the_login_hold_behind_it(wrapper: DatabaseWrapper) -> None:
    assert ask(wrapper, "SHOW lock_timeout") == "3s"
    assert ask(wrapper, "SHOW statement_timeout") == "30s"
    assert ask(wrapper, "SHOW idle_in_transaction_session_timeout") == "1min"
    assert ask(wrapper, "SHOW log_min_error_statement") == "panic"


def test_the_service_asks_for_nothing_that_a_pooler_loses(wrapper: DatabaseWrapper) -> None:
    parameters = wrapper.get_connection_params()
    assert parameters["prepare_threshold"] is None
    assert wrapper.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]
    assert "options" not in parameters
    assert parameters["port"] == "6432"
    with wrapper.as_owner():
        assert wrapper.get_connection_params().get("port") != "6432"


def test_an_announced_tenant_does_not_reach_the_next_client(wrapper: DatabaseWrapper) -> None:
    tenant = make_tenant()
    with wrapper.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT consentful_enter(%s, '{}')", [tenant.pk])
        cursor.execute("SELECT count(*) FROM consentful_audit_event")
        assert cursor.fetchone()[0] > 0
        cursor.execute("COMMIT")
    with pytest.raises(Exception, match="no tenant was announced"):
        ask(wrapper, "SELECT count(*) FROM consentful_audit_event")


def test_it_refuses_startup_options(pooler: Pooler, pooled: dict[str, str]) -> None:
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
        psycopg.connect(pooled["DATABASE_URL"], options="-c lock_timeout=3s")


def test_many_clients_share_two_connections_and_meet_their_own_data_alone(
    pooler: Pooler, pooled: dict[str, str], database: str
) -> None:
    tenants = [make_tenant() for _ in range(3)]
    people = [(one.slug, make_persona(one, "alice").token) for one in tenants]
    with run_service(
        "--no-housekeeping", DJANGO_SETTINGS_MODULE="tests.settings", TEST_DATABASE=database,
        WEB_CONCURRENCY="2", **pooled,
    ) as (url, _):  # fmt: skip
        assert httpx.get(f"{url}/readyz").status_code == 200

        def work(number: int) -> set[tuple[int, Any]]:
            slug, token = people[number % len(people)]
            base = f"{url}/api/v1/tenants/{slug}/preferences/me/k{number}"
            headers = {"Authorization": f"Bearer {token}"}
            seen = set()
            with httpx.Client(headers=headers, timeout=60) as client:
                for step in range(20):
                    value = f"{slug}-{number}-{step}"
                    written = client.put(base, params={"mode": "upsert"}, json={"value": value})
                    read = client.get(base)
                    seen.add((written.status_code // 100, read.json().get("value") == value))
            return seen

        with ThreadPoolExecutor(CLIENTS) as pool:
            assert set().union(*pool.map(work, range(CLIENTS))) == {(2, True)}
        servers = [one for one in pooler.show("SERVERS") if one["database"] == database]
        clients = [one for one in pooler.show("CLIENTS") if one["database"] == database]
    assert len(servers) <= SERVER_CONNECTIONS < len(clients)


def test_the_page_shows_what_is_tested() -> None:
    page = PAGE.read_text("utf-8")
    shown = configparser.ConfigParser()
    shown.read_string(re.findall(r"```ini\n(.*?)```", page, re.DOTALL)[0])
    tested = configparser.ConfigParser()
    tested.read_string(CONFIGURATION)
    decisive = ("pool_mode", "max_client_conn", "query_wait_timeout")
    assert {name: shown["pgbouncer"][name] for name in decisive} == {
        name: tested["pgbouncer"][name] for name in decisive
    }
    assert set(shown["pgbouncer"]) <= set(tested["pgbouncer"]) | {"listen_addr"}

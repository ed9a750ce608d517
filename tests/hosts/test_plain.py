"""A project as `startproject` makes it, with Django's own user and one login to the database."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.hosts.projects import Host
from tests.hosts.story import Teller, tell_story


@pytest.fixture(scope="module")
def bakery(
    installed: Path,
    make_database: Callable[[str], dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Host:
    host = Host.copy(
        "plain",
        tmp_path_factory.mktemp("hosts"),
        installed=installed,
        settings="bakery.settings",
        database=make_database("plain"),
    )
    host.manage("migrate", "--verbosity=0")
    host.manage("create_tenant", "bakery")
    host.manage("load_catalog", "bakery", "catalog.json")
    return host


@pytest.fixture(scope="module")
def url(bakery: Host) -> Iterator[str]:
    with bakery.serve() as url:
        yield url


def make_customer(bakery: Host, url: str, name: str) -> Teller:
    bakery.manage("grant_role", "bakery", name, "member", "--create-user")
    token = bakery.manage("issue_token", name, "--tenant", "bakery")
    return Teller(f"{url}/api/v1/tenants/bakery/", token)


def test_everything_comes_from_the_wheel(bakery: Host) -> None:
    program = "import audit, tenants; print(audit.__file__); print(tenants.__file__)"
    for line in bakery.python(program).splitlines():
        assert Path(line).is_relative_to(bakery.installed)


def test_the_one_login_is_told_what_it_lacks(bakery: Host) -> None:
    ran = bakery.run("manage.py", "check", "--database", "default")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("consentful.") == 1
    assert "consentful.W001" in ran.stderr


def test_the_project_needs_no_migration_of_its_own(bakery: Host) -> None:
    bakery.manage("makemigrations", "--check", "--dry-run")


def test_the_story_over_http(bakery: Host, url: str) -> None:
    tell_story(make_customer(bakery, url, "anna"), subject="anna")
    assert bakery.run("manage.py", "verify_audit").returncode == 0


def test_an_order_and_a_preference_stand_together(bakery: Host, url: str) -> None:
    customer = make_customer(bakery, url, "ben")
    ben = bakery.python(
        "from django.contrib.auth.models import User; print(User.objects.get(username='ben').pk)"
    )

    def order(slicing: str, **more: bool) -> tuple[int, str | None]:
        body = {"customer_id": ben, "slicing": slicing, "remember": True, **more}
        answer = httpx.post(f"{url}/orders/", json=body, timeout=60)
        return answer.status_code, answer.json().get("code")

    def taken() -> str:
        return bakery.python(
            "from orders.models import Order;"
            " print(*Order.objects.filter(customer='ben').values_list('slicing', flat=True))"
        )

    assert order("thin") == (403, "consent_required")
    assert taken() == ""

    customer("PUT", "consents/me/comfort", {"decision": "given", "version": 1})
    assert order("thin") == (201, None)
    assert order("thick", oven_is_cold=True) == (503, "oven_is_cold")
    assert taken() == "thin"
    assert customer("GET", "preferences/me/slicing").json()["value"] == "thin"
    events = bakery.python(
        "from audit.models import Event;"
        " print(*Event.objects.filter(key='slicing', actor='ben').order_by('id')"
        ".values_list('action', flat=True))"
    )
    assert events == "preference.created"
    assert bakery.run("manage.py", "verify_audit").returncode == 0


def test_its_own_tests_use_the_fixtures_of_the_wheel(bakery: Host) -> None:
    assert "passed" in bakery.test()


def test_the_fixtures_burden_nobody_who_asks_for_none(bakery: Host) -> None:
    program = "import sys, preferences.pytest_plugin; print('django' in sys.modules)"
    assert bakery.run("-c", program).stdout == "False\n"

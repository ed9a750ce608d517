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


#: Makes a member of the bakery's tenant.
PREPARE = """
from django.contrib.auth.models import User
from tenants.roles import Role
from tenants.services import get_tenant, grant_role
from tenants.tokens import issue_token

user, tenant = User.objects.create_user("{name}"), get_tenant(slug="bakery")
grant_role(tenant=tenant, user=user, role=Role.MEMBER)
print(user.pk, issue_token(user=user, tenant=tenant)[0])
"""

#: Prints what orders and events a customer has.
LOOK = """
from audit.models import Event
from orders.models import Order

print(*Order.objects.filter(customer="{name}").order_by("pk").values_list("slicing", flat=True))
events = Event.objects.filter(key="slicing", actor="{name}").order_by("pk")
print(*events.values_list("action", flat=True))
"""


def make_customer(bakery: Host, url: str, name: str) -> tuple[str, Teller]:
    """Return the id of a new user, and that user's credential."""
    number, token = bakery.python(PREPARE.format(name=name)).split()
    return number, Teller(f"{url}/api/v1/tenants/bakery/", token)


def test_everything_comes_from_the_wheel_and_waits_for_its_use(bakery: Host) -> None:
    program = (
        "import sys, preferences.pytest_plugin as plugin;"
        " print(plugin.__file__); print('django' in sys.modules)"
    )
    place, is_django_loaded = bakery.run("-c", program).stdout.splitlines()
    assert Path(place).is_relative_to(bakery.installed)
    # Every run of pytest in that environment loads the fixtures, in projects without Django too.
    assert is_django_loaded == "False"


def test_the_one_login_is_told_what_it_lacks(bakery: Host) -> None:
    ran = bakery.run("manage.py", "check", "--database", "default")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("consentful.") == 1
    assert "consentful.W001" in ran.stderr


def test_another_isolation_level_is_an_error(bakery: Host) -> None:
    level = "-c default_transaction_isolation=serializable"
    ran = bakery.run("manage.py", "check", "--database", "default", PGOPTIONS=level)
    assert ran.returncode == 1
    assert "consentful.E003" in ran.stderr


def test_the_story_over_http(bakery: Host, url: str) -> None:
    tell_story(make_customer(bakery, url, "anna")[1], subject="anna")


def test_an_order_and_a_preference_stand_together(bakery: Host, url: str) -> None:
    number, customer = make_customer(bakery, url, "ben")

    def order(slicing: str, **more: bool) -> tuple[int, str | None]:
        body = {"customer_id": number, "slicing": slicing, "remember": True, **more}
        answer = httpx.post(f"{url}/orders/", json=body, timeout=60)
        return answer.status_code, answer.json().get("code")

    assert order("thick") == (403, "consent_required")
    customer("PUT", "consents/me/comfort", {"decision": "given", "version": 1})
    assert order("thin") == (201, None)
    assert order("thick", oven_is_cold=True) == (503, "oven_is_cold")
    assert customer("GET", "preferences/me/slicing").json()["value"] == "thin"

    orders, events = bakery.python(LOOK.format(name="ben")).splitlines()
    assert orders == "thin"
    # The refused order was rolled back by the shop, and its denied event with it.
    assert events == "preference.created"
    assert bakery.run("manage.py", "verify_audit").returncode == 0


def test_its_own_tests_use_the_fixtures_of_the_wheel(bakery: Host) -> None:
    assert "passed" in bakery.test()

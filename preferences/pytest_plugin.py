"""
Fixtures for the tests of a host, found by `pytest` wherever the wheel is installed.

Loaded before Django's settings are, and in projects without Django too: nothing but `pytest` is
imported until a fixture is asked for.
"""

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from preferences.testing import Person
    from tenants.models import Tenant


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Make the test database one that pytest-django can empty, as soon as there is one."""
    result = yield
    if fixturedef.argname == "django_db_setup":
        from preferences.testing import let_tests_flush

        with request.getfixturevalue("django_db_blocker").unblock():
            let_tests_flush()
    return result


@pytest.fixture
def consentful_catalog() -> Mapping[str, Any]:
    """The purposes and definitions of `consentful_tenant`: override it with your own."""
    from preferences.testing import CATALOG

    return CATALOG


@pytest.fixture
def consentful_tenant(db: None, consentful_catalog: Mapping[str, Any]) -> "Tenant":
    """A new tenant, with `consentful_catalog` loaded."""
    from preferences.testing import make_tenant

    return make_tenant(consentful_catalog)


@pytest.fixture
def consentful_user(db: None) -> Any:
    """A new user of the host's model: override it where more than a login is needed."""
    from preferences.testing import make_user

    return make_user()


@pytest.fixture
def consentful_person(consentful_tenant: "Tenant", consentful_user: Any) -> "Person":
    """`consentful_user` as a member of `consentful_tenant`, who has decided nothing yet."""
    from preferences.testing import make_person

    return make_person(consentful_tenant, consentful_user)


@pytest.fixture
def consentful_consent(consentful_person: "Person") -> None:
    """Consent of `consentful_person` to every purpose that rests on it."""
    consentful_person.give()

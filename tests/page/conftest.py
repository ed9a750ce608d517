"""A person before its own page: by Django's client, and in a real browser at the real server."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

from privacy.held import handle_of
from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import grant_role
from tenants.tokens import issue_token
from tests.admin.conftest import ARTEFACTS, PASSWORD, chromium  # noqa: F401  a fixture
from tests.factories import make_persona, make_tenant, unique
from tests.http.client import API

#: Milliseconds that a browser may take for one step.
PATIENCE = 60_000
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1100, "height": 900}


class Person:
    """Somebody with a sign-in, a token and a page, in one tenant."""

    def __init__(self, tenant: Tenant, *roles: Role, name: str | None = None, **more: Any) -> None:
        self.tenant = tenant
        self.name = name or unique("p")
        self.user = get_user_model().objects.create_user(username=self.name, password=PASSWORD)
        for role in roles or (Role.MEMBER,):
            grant_role(tenant=tenant, user=self.user, role=role, **more)
        self.api = API(tenant.slug, issue_token(user=self.user, tenant=tenant)[0])
        self.home = f"/me/{tenant.slug}/"

    def record(self, key: str) -> str:
        """Return the address of one record's page."""
        return f"{self.home}records/{handle_of(self.tenant.pk, self.name, key)}"

    def client(self, **more: Any) -> Client:
        """Return an in-process client with a session of its own."""
        client = Client(raise_request_exception=False, **more)
        client.force_login(self.user)
        return client


class Visit:
    """One browser window of one person."""

    def __init__(self, context: Any, server: str, person: Person | None) -> None:
        self.server = server
        self.person = person
        self.context = context
        self.foreign: list[str] = []
        self.faults: list[str] = []
        context.on("request", self._note)
        if person is not None:
            cookie = person.client().cookies[settings.SESSION_COOKIE_NAME]
            context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": server}])
        self.page = context.new_page()
        # Patience costs nothing where all is well, and a busy machine is no fault of the page.
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._listen)

    def _note(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.server).netloc:
            self.foreign.append(request.url)

    def _listen(self, message: Any) -> None:
        # A refused page is one by intent, and its status no fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def open(self, path: str = "") -> Any:
        """Go to a path below the person's page."""
        home = self.person.home if self.person else ""
        return self.page.goto(f"{self.server}{path if path.startswith('/') else home + path}")

    def picture(self, name: str, **more: Any) -> None:
        """Keep what is to be seen, for whoever runs the tests."""
        ARTEFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png", **more)

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


@pytest.fixture
def visit(chromium: Any, server: str) -> Iterator[Callable[..., Visit]]:  # noqa: F811  the fixture
    """Open the page as a person; no page may ask another host or report an error."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    visits: list[Visit] = []
    with contextlib.ExitStack() as stack:

        def open_one(person: Person | None, **more: Any) -> Visit:
            more = {"viewport": DESKTOP, "locale": "en-GB", **more}
            context = chromium.new_context(**more)
            stack.callback(context.close)
            visits.append(Visit(context, server, person))
            return visits[-1]

        yield open_one
        for one in visits:
            assert one.foreign == []
            assert one.faults == []


def fill(person: Person) -> Person:
    """Store something of every kind about a person, who agrees to support."""
    api = person.api
    assert api.give("me", "support").status == 200
    values = {
        "reply_style": "brief",
        "tone": "Friendly, no jargon.\nShort sentences please.",
        "theme": "dark",
        "limit": 3.12,
        "newsletter": True,
        "languages": ["English", "Deutsch"],
        "address": {"city": "Graz", "floors": [1, {"deep": {"deeper": [1]}}], "note": None},
        "nothing": None,
    }
    for key, value in values.items():
        assert api.write("me", key, value).status == 201, key
    staff = API(person.tenant.slug, make_persona(person.tenant, "operator").token)
    assert staff.write(f"user::{person.name}", "staff_note", "Prefers mail").status == 201
    return person


@pytest.fixture(scope="module")
def shared(database: str) -> Tenant:
    """A tenant whose people do not see each other: one for many tests."""
    return make_tenant()


@pytest.fixture
def tenant(database: str) -> Tenant:
    return make_tenant()


@pytest.fixture
def person(shared: Tenant) -> Person:
    """Somebody about whom nothing is held yet, among others."""
    return Person(shared)


@pytest.fixture
def apart(tenant: Tenant) -> Person:
    """Somebody about whom nothing is held yet, in a tenant that the test may change."""
    return Person(tenant)


@pytest.fixture(scope="module")
def alice(database: str) -> Person:
    """Somebody about whom something of every kind is held; nobody changes it."""
    tenant = make_tenant()
    Tenant.objects.filter(pk=tenant.pk).update(name="Acme Tools")
    return fill(Person(tenant))


@pytest.fixture(scope="session")
def axe() -> Any:
    """axe-core as its Python package carries it; its absence is a failure where the pipeline runs."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        reason = "No axe-core: install axe-playwright-python."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Axe()

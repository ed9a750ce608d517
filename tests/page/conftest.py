"""A person before its own page: in a real browser, at the real server."""

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import grant_role
from tests.admin.conftest import ARTEFACTS, PASSWORD, chromium  # noqa: F401  a fixture
from tests.factories import make_persona, make_tenant, unique
from tests.http.client import API

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1100, "height": 900}


class Person:
    """Somebody with a sign-in, a token and a page, in one tenant."""

    def __init__(self, tenant: Tenant, name: str | None = None, *roles: Role, **more: Any) -> None:
        self.tenant = tenant
        self.name = name or unique("p")
        self.user = get_user_model().objects.create_user(username=self.name, password=PASSWORD)
        for role in roles or (Role.MEMBER,):
            grant_role(tenant=tenant, user=self.user, role=role, **more)
        from tenants.tokens import issue_token

        self.api = API(tenant.slug, issue_token(user=self.user, tenant=tenant)[0])
        self.home = f"/me/{tenant.slug}/"

    def client(self) -> Client:
        """Return an in-process client with a session."""
        client = Client()
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
        self.page.set_default_timeout(10_000)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._listen)

    def _note(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.server).netloc:
            self.foreign.append(request.url)

    def _listen(self, message: Any) -> None:
        # A refused page is a page by intent; a browser asks for /favicon.ico by itself.
        is_status = "Failed to load resource" in message.text
        if message.type == "error" and not is_status:
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


@pytest.fixture(scope="module")
def alice(database: str) -> Person:
    """A person about whom something of every kind is held."""
    tenant = make_tenant()
    Tenant.objects.filter(pk=tenant.pk).update(name="Acme Tools")
    person = Person(tenant)
    api = person.api
    assert api.give("me", "support").status == 200
    values = {
        "reply_style": "brief",
        "tone": "Friendly, no jargon.\nShort sentences please.",
        "theme": "dark",
        "limit": 3.12,
        "newsletter": True,
        "languages": ["English", "Deutsch"],
        "address": {"city": "Graz", "floors": [1, 2, {"deep": {"deeper": [1]}}], "note": None},
        "nothing": None,
    }
    for key, value in values.items():
        assert api.write("me", key, value).status == 201, key
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    assert staff.write(f"user::{person.name}", "staff_note", "Prefers mail").status == 201
    return person


@pytest.fixture(scope="session")
def axe() -> Any:
    """axe-core, as its Python package carries it."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe()

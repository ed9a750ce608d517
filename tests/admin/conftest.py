"""Operators at the admin: by Django's client, and in a real browser before the real server."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import grant_role
from tests.factories import make_persona, make_tenant, unique
from tests.http.client import API
from tests.http.conftest import Clock, replace_clock

CHROMIUM = Path("/usr/bin/chromium")
#: Pictures of the run, kept by whoever runs the tests.
ARTEFACTS = Path(__file__).resolve().parents[2] / ".artefacts"
#: Quiet: no request but those of the pages.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "a-password-for-tests"


def url(model: Any, verb: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{verb}", args=args)


class Operator(Client):
    """A signed-in user of the admin, in one tenant."""

    def __init__(
        self, tenant: Tenant | None, *roles: Role, name: str | None = None, **flags: Any
    ) -> None:
        super().__init__()
        self.user = get_user_model().objects.create_user(
            username=name or unique("op"), password=PASSWORD, is_staff=True, **flags
        )
        if not flags.get("is_superuser"):
            self.user.user_permissions.set(
                Permission.objects.filter(
                    content_type__app_label__startswith="consentful_"
                ).exclude(codename="view_withheld_values")
            )
        for role in roles:
            grant_role(tenant=tenant, user=self.user, role=role)
        self.force_login(self.user)
        if tenant is not None:
            self.enter(tenant)

    def enter(self, tenant: Tenant) -> Any:
        return self.post(url(Tenant, "enter", tenant.pk))

    def allow(self, codename: str) -> None:
        self.user.user_permissions.add(Permission.objects.get(codename=codename))


@pytest.fixture
def tenant(database: str) -> Tenant:
    return make_tenant()


@pytest.fixture
def operator(tenant: Tenant) -> Operator:
    return Operator(tenant, Role.OPERATOR)


@pytest.fixture
def owner(tenant: Tenant) -> Operator:
    return Operator(tenant, Role.OWNER)


@pytest.fixture
def boss(tenant: Tenant) -> Operator:
    return Operator(tenant, is_superuser=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """
    A browser for one module: its loop must not outlive the tests that need it.

    Its absence is a skip here and a failure where the pipeline runs.
    """
    if not CHROMIUM.exists():
        reason = f"No browser at {CHROMIUM}: install Debian's package chromium."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    # Playwright's loop runs in this thread for as long as the browser lives, and Django refuses
    # its ORM wherever a loop runs. Nothing here is asynchronous: every call blocks.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
            yield browser
            browser.close()
    finally:
        if before is None:
            os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


class Desk:
    """One operator's browser window."""

    def __init__(self, context: Any, server: str) -> None:
        self.server = server
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.set_default_navigation_timeout(15_000)
        self.foreign: list[str] = []
        self.faults: list[str] = []
        context.on("request", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._listen)

    def _note(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(self.server).netloc:
            self.foreign.append(request.url)

    def _listen(self, message: Any) -> None:
        # A browser asks for /favicon.ico by itself, and a refused page is a 403 by intent.
        is_ours = not message.location.get("url", "").endswith("/favicon.ico")
        if message.type == "error" and is_ours and "status of 403" not in message.text:
            self.faults.append(message.text)

    def sign_in(self, client: Operator) -> None:
        """Sign in as an operator does."""
        self.open("/admin/")
        self.page.get_by_label("Username").fill(client.user.username)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()

    def take_session(self, client: Operator) -> None:
        """Go on with the session of the client: one sign-in through the form is enough to test."""
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        self.page.context.add_cookies(
            [{"name": cookie.key, "value": cookie.value, "url": self.server}]
        )
        self.open("/admin/")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server}{path}")

    def picture(self, name: str) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"{name}.png")


@pytest.fixture
def open_desk(chromium: Any, server: str) -> Iterator[Callable[..., Desk]]:
    """Open the browser as an operator; no page may ask another host or report an error."""
    desks: list[Desk] = []
    with contextlib.ExitStack() as stack:

        def open_one(client: Operator, *, by_form: bool = False, **more: Any) -> Desk:
            context = chromium.new_context(viewport={"width": 1280, "height": 800}, **more)
            stack.callback(context.close)
            desk = Desk(context, server)
            desk.sign_in(client) if by_form else desk.take_session(client)
            desks.append(desk)
            return desk

        yield open_one
        for desk in desks:
            assert desk.foreign == []
            assert desk.faults == []


@pytest.fixture
def alice(tenant: Tenant) -> API:
    return API(tenant.slug, make_persona(tenant, "alice").token)


@pytest.fixture
def staff(tenant: Tenant) -> API:
    return API(tenant.slug, make_persona(tenant, "operator").token)


@pytest.fixture
def frozen(database: str) -> Iterator[Clock]:
    """A clock that stands still from now on, and runs again after the test."""
    try:
        yield Clock()
    finally:
        replace_clock("clock_timestamp()")

"""
A project with users, organisations, DRF defaults, a language and a time zone of its own.

Under ATOMIC_REQUESTS, with two logins and a second database: once beside Consentful's, once with
Consentful and the people in the second one.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.db import connection

from tests.hosts.projects import Host
from tests.hosts.story import Teller, tell_story

pytestmark = pytest.mark.skipif(
    not connection.settings_dict["OPTIONS"].get("owner"), reason="one login does everything"
)


#: Makes an organisation with its tenant, and a user who is a member of it.
PREPARE = """
import json, uuid
from accounts.mapping import person_of_user
from accounts.models import Organisation, User
from preferences.catalog import load_catalog
from tenants.roles import Role
from tenants.services import create_tenant, grant_role
from tenants.tokens import issue_token

name = "org-" + uuid.uuid4().hex[:8]
tenant = create_tenant(slug=name)
load_catalog(tenant=tenant, catalog=json.load(open("catalog.json")))
organisation = Organisation.objects.create(name="O", short_name=name)
user = User.objects.create_user(name + "@example.com")
grant_role(tenant=tenant, user=user, role=Role.MEMBER)
token, _ = issue_token(user=user, tenant=tenant)
print(json.dumps(dict(
    organisation=str(organisation.pk), tenant=name, email=user.email, token=token,
    person=person_of_user(str(user.pk), name),
)))
"""

#: Prints what one author's requests have left.
LOOK = """
import json
from audit.actors import SYSTEM
from audit.models import Event
from briefs.models import Brief
from tenants.services import get_tenant
from tenants.units import unit_of_work

briefs = Brief.objects.filter(author="{email}").order_by("id").values_list("text", flat=True)
with unit_of_work(tenant_id=get_tenant(slug="{tenant}").pk, actor=SYSTEM):
    events = Event.objects.filter(key="slicing", actor="{email}").order_by("id")
    print(json.dumps([list(briefs), list(events.values_list("action", flat=True))]))
"""


@dataclass
class Member:
    """Someone who works for one organisation of the project."""

    organisation: str
    tenant: str
    email: str
    person: str
    token: str
    api: Teller = field(init=False)


@dataclass
class Studio:
    """The project, the login that migrates it, and its server while it runs."""

    host: Host
    owner: dict[str, str]
    url: str = ""

    @property
    def alias(self) -> str:
        """The database that holds Consentful's tables."""
        return "default" if self.host.settings == f"studio.{BESIDE}" else "people"

    def migrate(self, alias: str) -> None:
        self.host.manage("migrate", "--verbosity=0", "--database", alias, **self.owner)

    def make_member(self) -> "Member":
        """Return a new member of a new organisation."""
        member = Member(**json.loads(self.host.python(PREPARE)))
        member.api = Teller(self.base_of(member.organisation), member.token)
        return member

    def base_of(self, organisation: str) -> str:
        return f"{self.url}/remembered/tenants/{organisation}/"


BESIDE, APART = "settings", "settings_apart"

#: Most of what the project brings along does not depend on where the tables are.
beside = pytest.mark.parametrize("studio", [BESIDE], indirect=True)
apart = pytest.mark.parametrize("studio", [APART], indirect=True)


@pytest.fixture(scope="module", params=[BESIDE, APART])
def studio(
    request: pytest.FixtureRequest,
    installed: Any,
    make_database: Callable[[str], dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Studio]:
    owner = make_database(request.param)
    runtime = connection.settings_dict["USER"]
    host = Host.copy(
        "mapped",
        tmp_path_factory.mktemp("hosts"),
        installed=installed,
        settings=f"studio.{request.param}",
        database=owner
        | {"PGUSER": runtime, "PGPASSWORD": connection.settings_dict["PASSWORD"] or ""},
        environment={"STUDIO_RUNTIME_LOGIN": runtime},
    )
    studio = Studio(host, owner)
    for alias in ("default", "metrics" if request.param == BESIDE else "people"):
        studio.migrate(alias)
    with host.serve() as studio.url:
        yield studio


@pytest.fixture(scope="module")
def mira(studio: Studio) -> Member:
    return studio.make_member()


def test_the_story_over_http(studio: Studio) -> None:
    member = studio.make_member()
    tell_story(member.api, subject=member.person)


@beside
def test_both_walls_stand(studio: Studio) -> None:
    ran = studio.host.run("manage.py", "check", "--database", studio.alias)
    assert (ran.returncode, "consentful." in ran.stderr) == (0, False), ran.stderr
    studio.host.manage("makemigrations", "--check", "--dry-run")


@beside
def test_a_strange_organisation_looks_like_none(studio: Studio, mira: Member) -> None:
    for name in (str(uuid4()), mira.tenant, "no-uuid"):
        api = Teller(studio.base_of(name), mira.token)
        assert api.outcome("GET", "whoami") == (404, "not_found"), name


@beside
def test_without_a_credential_the_answer_is_401(studio: Studio, mira: Member) -> None:
    answer = httpx.get(f"{studio.base_of(mira.organisation)}whoami", timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_services_inside_the_requests_transaction(studio: Studio) -> None:
    member = studio.make_member()

    def write(text: str, **more: Any) -> tuple[int, Any]:
        body = {"author": member.email, "text": text, **more}
        answer = httpx.post(f"{studio.url}/{member.organisation}/briefs/", json=body, timeout=60)
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status_code, answer.json() if is_json else None

    assert write("first", slicing="thin") == (403, {"code": "consent_required"})
    member.api("PUT", "consents/me/comfort", {"decision": "given", "version": 1})
    written = {"slicing": "thin", "is_atomic": True}
    assert write("second", slicing="thin") == (201, written)
    assert write("third", slicing="thick", is_on_fire=True) == (500, None)
    assert member.api("GET", "preferences/me/slicing").json()["value"] == "thin"

    look = LOOK.format(email=member.email, tenant=member.tenant)
    briefs, events = json.loads(studio.host.python(look))
    assert briefs == ["first", "second"]
    assert events == ["access.denied", "preference.created"]
    assert studio.host.run("manage.py", "verify_audit").returncode == 0


@beside
def test_credentials_of_the_project_open_the_api(studio: Studio, mira: Member) -> None:
    whoami = f"{studio.base_of(mira.organisation)}whoami"
    answer = httpx.get(whoami, headers={"X-Badge": mira.email}, timeout=60)
    assert (answer.status_code, answer.json()["subject"]) == (200, mira.person)


@beside
def test_throttling_is_the_projects_own(studio: Studio, mira: Member) -> None:
    with studio.host.serve(STUDIO_RATE="2/min") as url:
        api = Teller(f"{url}/remembered/tenants/{mira.organisation}/", mira.token)
        answers = [api("GET", "whoami") for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert answers[-1].json()["code"] == "throttled"
    assert int(answers[-1].headers["Retry-After"]) > 0


@apart
def test_its_own_tests_use_the_fixtures_of_the_wheel(studio: Studio) -> None:
    # As the owner, who may make the database that the tests throw away.
    assert "passed" in studio.host.test(**studio.owner)


@beside
def test_the_login_that_serves_does_not_migrate(studio: Studio) -> None:
    alias = studio.alias
    ran = studio.host.run("manage.py", "migrate", "--database", alias)
    assert ran.returncode == 1
    assert ran.stderr.startswith("CommandError: consentful.E006:"), ran.stderr
    strange = studio.owner | {"STUDIO_RUNTIME_LOGIN": "nobody_here"}
    ran = studio.host.run("manage.py", "migrate", "--database", alias, **strange)
    assert ran.returncode == 1
    assert "\nCommandError: consentful.E007:" in ran.stderr

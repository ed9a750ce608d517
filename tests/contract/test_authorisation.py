"""Every route, method and caller: exactly the documented class of answer, and no foreign word in it."""

from typing import NamedTuple

import pytest
from django.test import Client

from tenants.roles import Role
from tenants.tokens import issue_token
from tests.contract.foreign import MARKER, fill
from tests.factories import Persona
from tests.http.client import API, put
from tests.http.conftest import World

BASE = "/api/v1/tenants/{tenant}/"
ADDRESS = "preferences/{address}"
WHY = {"reason": "asked by mail"}
#: Without cookies, so that nothing but the token says who asks.
CLIENT = Client(raise_request_exception=False)
CALLERS = ("alice", "bob", "agent", "bound", "operator", "auditor", "owner")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Row(NamedTuple):
    """One request, and the status that each of `CALLERS` gets, in their order."""

    method: str
    route: str
    path: str
    statuses: tuple[int, ...]
    body: object = None
    query: dict[str, str] = {}


#: Alice's data and shared data. `bound` is an agent on her behalf, `bob` another member; none of
#: the records called `gone` exists, so that a request that passes finds nothing.
TABLE = [
    Row("GET", "whoami", "whoami", (200, 200, 200, 200, 200, 200, 200)),
    Row("GET", "definitions", "definitions", (200, 200, 200, 200, 200, 200, 200)),
    Row("GET", "purposes", "purposes", (200, 200, 200, 200, 200, 200, 200)),
    Row("GET", "preferences", "preferences", (200, 200, 400, 200, 200, 403, 200)),
    Row("GET", "preferences", "preferences", (200, 403, 200, 200, 200, 403, 200),
        query={"scope": "user::alice", **WHY}),
    Row("GET", "preferences", "preferences", (200, 200, 200, 200, 200, 403, 200),
        query={"scope": "project::x"}),
    Row("GET", "preferences/effective", "preferences/effective",
        (200, 200, 200, 200, 200, 403, 200), query={"scope": "user::alice"}),
    Row("POST", "preferences/batch", "preferences/batch", (200, 403, 200, 200, 200, 403, 200),
        {"operations": [{"op": "get", "scope": "user::alice", "key": "k"}]}, WHY),
    Row("POST", "preferences/batch", "preferences/batch", (200, 403, 200, 200, 200, 403, 200),
        {"operations": [put("user::alice", "k", mode="upsert")]}),
    Row("POST", "context", "context", (200, 200, 200, 200, 200, 403, 200),
        {"purpose": "support", "scopes": ["user::alice", "project::x"], "keys": ["k"]}),
    Row("GET", "preferences/ranked", "preferences/ranked", (200, 200, 200, 200, 200, 403, 200),
        query={"scope": "user::alice", "term": "word"}),
    Row("GET", "preferences/search", "preferences/search", (200, 200, 200, 200, 200, 403, 200),
        query={"scope": "user::alice", "q": "word"}),
    Row("GET", "preferences/search", "preferences/search", (200, 200, 400, 200, 200, 403, 200),
        query={"q": "word"}),
    Row("POST", "preferences/archive", "preferences/archive", (409, 403, 409, 409, 409, 403, 409),
        {"scope": "user::alice", "key": "k", "revision": "0" * 32}),
    Row("POST", "preferences/archive", "preferences/archive", (403, 403, 409, 409, 409, 403, 409),
        {"scope": "project::x", "key": "k", "revision": "0" * 32}),
    Row("POST", "preferences/restore", "preferences/restore", (409, 403, 409, 409, 409, 403, 409),
        {"scope": "user::alice", "key": "k", "revision": "0" * 32}),
    Row("GET", ADDRESS, "preferences/user::alice/k", (200, 403, 200, 200, 200, 403, 200), query=WHY),
    Row("GET", ADDRESS, "preferences/user::alice/k", (200, 403, 200, 200, 400, 403, 400)),
    Row("GET", ADDRESS, "preferences/user::alice/banner", (403, 403, 403, 403, 403, 403, 403),
        query=WHY),
    Row("GET", ADDRESS, "preferences/project::x/k", (200, 200, 200, 200, 200, 403, 200)),
    Row("PUT", ADDRESS, "preferences/user::alice/k", (200, 403, 200, 200, 200, 403, 200),
        {"value": 1}, {"mode": "upsert"}),
    Row("PUT", ADDRESS, "preferences/user::alice/staff_note",
        (403, 403, 403, 403, 201, 403, 409), {"value": 1}),
    Row("PUT", ADDRESS, "preferences/project::x/k", (403, 403, 200, 200, 200, 403, 200),
        {"value": 1}, {"mode": "upsert"}),
    Row("DELETE", ADDRESS, "preferences/user::alice/gone", (404, 403, 404, 404, 404, 403, 404),
        query=WHY),
    Row("DELETE", ADDRESS, "preferences/user::alice/gone", (404, 403, 404, 404, 400, 403, 400)),
    Row("DELETE", ADDRESS, "preferences/user::alice/banner", (404, 403, 403, 403, 404, 403, 404),
        query=WHY),
    Row("DELETE", ADDRESS, "preferences/project::x/gone", (403, 403, 404, 404, 404, 403, 404)),
    Row("GET", "consents/{subject}", "consents/alice", (200, 403, 200, 200, 200, 200, 200), query=WHY),
    Row("GET", "consents/{subject}", "consents/alice", (200, 403, 200, 200, 400, 200, 400)),
    Row("PUT", "consents/{subject}/{purpose}", "consents/alice/ads",
        (200, 403, 403, 403, 200, 403, 200), {"decision": "refused", "evidence": "by mail"}),
    Row("PUT", "consents/{subject}/{purpose}", "consents/alice/ads",
        (200, 403, 403, 403, 400, 403, 400), {"decision": "refused"}),
    Row("GET", "consents/{subject}/{purpose}/history", "consents/alice/support/history",
        (200, 403, 403, 403, 200, 200, 200), query=WHY),
    Row("GET", "subjects/{subject}/data", "subjects/alice/data",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("GET", "subjects/{subject}/data", "subjects/alice/data",
        (200, 403, 403, 403, 400, 403, 400)),
    Row("GET", "consents/{subject}/{purpose}/receipt", "consents/alice/support/receipt",
        (200, 403, 403, 403, 200, 200, 200), query=WHY),
    Row("POST", "consents/{subject}/{purpose}/confirmation", "consents/alice/support/confirmation",
        (404, 403, 403, 403, 404, 403, 404), {"token": "gone"}),
    Row("GET", "subjects/{subject}/restrictions", "subjects/alice/restrictions",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("PUT", "subjects/{subject}/restriction", "subjects/bob/restriction",
        (403, 200, 403, 403, 200, 403, 200), {"evidence": "by mail"}),
    Row("DELETE", "subjects/{subject}/restriction", "subjects/carol/restriction",
        (403, 403, 403, 403, 404, 403, 404), query=WHY),
    Row("PUT", "subjects/{subject}/restrictions/{key}", "subjects/alice/restrictions/gone",
        (200, 403, 403, 403, 200, 403, 200), {"evidence": "by mail"}),
    Row("DELETE", "subjects/{subject}/restrictions/{key}", "subjects/alice/restrictions/other",
        (404, 403, 403, 403, 404, 403, 404), query=WHY),
    Row("GET", "subjects/{subject}/objections", "subjects/alice/objections",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("PUT", "subjects/{subject}/objections/{purpose}", "subjects/alice/objections/support",
        (400, 403, 403, 403, 400, 403, 400), {"evidence": "by mail"}),
    Row("DELETE", "subjects/{subject}/objections/{purpose}", "subjects/alice/objections/support",
        (400, 403, 403, 403, 400, 403, 400), query=WHY),
    Row("GET", "subjects/{subject}/guardians", "subjects/alice/guardians",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("PUT", "subjects/{subject}/guardians/{username}", "subjects/kim/guardians/nobody-here",
        (403, 403, 403, 403, 404, 403, 404), {"evidence": "a paper"}),
    Row("DELETE", "subjects/{subject}/guardians/{username}", "subjects/kim/guardians/nobody-here",
        (403, 403, 403, 403, 404, 403, 404), query=WHY),
    Row("GET", "subjects/{subject}/holds", "subjects/alice/holds",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("PUT", "subjects/{subject}/holds/{key}", "subjects/alice/holds/gone",
        (403, 403, 403, 403, 404, 403, 404), {"reason": "a case"}),
    Row("DELETE", "subjects/{subject}/holds/{key}", "subjects/alice/holds/gone",
        (403, 403, 403, 403, 404, 403, 404), query=WHY),
    Row("GET", "subjects/{subject}/activity", "subjects/alice/activity",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("GET", "subjects/{subject}/activity", "subjects/alice/activity",
        (200, 403, 403, 403, 400, 403, 400)),
    Row("GET", "subjects/{subject}/export", "subjects/alice/export",
        (200, 403, 403, 403, 200, 403, 200), query=WHY),
    Row("GET", "subjects/{subject}/export", "subjects/alice/export",
        (200, 403, 403, 403, 400, 403, 400)),
    Row("POST", "subjects/{subject}/erasures", "subjects/alice/erasures",
        (201, 403, 403, 403, 201, 403, 201), {"keys": ["gone"]}, WHY),
    Row("POST", "subjects/{subject}/erasures", "subjects/alice/erasures",
        (201, 403, 403, 403, 400, 403, 400), {"keys": ["gone"]}),
    Row("GET", "erasures/{reference}", f"erasures/{'0' * 32}",
        (404, 404, 403, 403, 404, 403, 404)),
    Row("GET", "erasures/{reference}/receipt", f"erasures/{'0' * 32}/receipt",
        (404, 404, 403, 403, 404, 403, 404)),
    Row("GET", "audit", "audit", (403, 403, 403, 403, 403, 200, 200)),
    Row("GET", "audit/checkpoint", "audit/checkpoint", (403, 403, 403, 403, 403, 200, 200)),
    Row("GET", "audit/export", "audit/export", (403, 403, 403, 403, 403, 200, 200)),
    Row("GET", "changes", "changes", (403, 403, 403, 403, 403, 200, 200)),
    Row("GET", "tools", "tools", (200, 200, 200, 200, 200, 403, 200),
        query={"format": "anthropic"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def other():
    """The other tenant, every text of which holds the marker."""
    other = World()
    fill(other)
    return other


@pytest.fixture(scope="module")
def filled():
    """This tenant, with something to be read; `ads` was never consented to."""
    world = World()
    world.alice.give("me", "support")
    assert world.alice.write("me", "k", 1).status == 201
    assert world.operator.write("project::x", "k", 1).status == 201
    return world


def ask(api, row):
    answer = api.request(row.method, row.path, row.body, query=row.query, client=CLIENT)
    shown = answer.content + str(dict(answer.headers)).encode()
    assert MARKER.encode() not in shown
    return answer


def test_the_table_is_complete(filled):
    """A new operation of the document needs its rows here."""
    paths = filled.stranger.get("/api/v1/schema/", headers={"Accept": "application/json"}).json[
        "paths"
    ]
    known = {(row.method, BASE + row.route) for row in TABLE}
    found = {(method.upper(), path.removeprefix("/")) for path, methods in paths.items()
             for method in methods if method in ("get", "put", "post", "patch", "delete")}  # fmt: skip
    below = {(method, f"/{path}") for method, path in found if "{tenant}" in path}
    assert below == known


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=f"{number} {row.method} {row.path}") for number, row in enumerate(TABLE)],
)
def test_each_caller(filled, other, row):
    for name, status in zip(CALLERS, row.statuses, strict=True):
        api = getattr(filled, name)
        with filled.denied(1 if status == 403 else 0):
            answer = ask(api, row)
        assert (name, answer.status) == (name, status)
    assert ask(filled.stranger, row).outcome == (401, "not_authenticated")
    with filled.denied(0), other.denied(0):
        for foreign in (
            API(filled.tenant.slug, other.owner.token),
            API(filled.tenant.slug, unconfined(other)),
            *(API(other.tenant.slug, getattr(filled, name).token) for name in CALLERS),
        ):
            assert ask(foreign, row).outcome == (404, "not_found")
        nowhere = API("no-such-tenant", filled.owner.token)
        assert ask(nowhere, row).outcome == (404, "not_found")


def unconfined(world):
    """A token that names no tenant: its user has a role in that one alone."""
    return issue_token(user=Persona(world.tenant, f"{MARKER}-boss", Role.OWNER).user)[0]


@pytest.mark.parametrize("route", sorted({row.route for row in TABLE}))
def test_other_methods(filled, other, route):
    """OPTIONS is everybody's, what a route does not know is nobody's, before any tenant is told."""
    rows = [row for row in TABLE if row.route == route]
    known = {row.method for row in rows} | {"OPTIONS"}
    known |= {"HEAD"} if "GET" in known else set()
    for method in METHODS:
        row = Row(method, route, rows[0].path, (), None, {})
        if method == "OPTIONS":
            for api in (filled.stranger, filled.alice, API(other.tenant.slug, filled.alice.token)):
                answer = ask(api, row)
                assert answer.status == 200
                assert {one.strip() for one in answer.headers["Allow"].split(",")} == known
        elif method not in known:
            assert ask(filled.stranger, row).status == 401
            for name in CALLERS:
                assert ask(getattr(filled, name), row).status == 405
            assert ask(API(other.tenant.slug, filled.alice.token), row).status == 405

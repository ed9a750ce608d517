"""The order of refusals, headers, methods, and the wall between tenants."""

import contextlib
import logging
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.log import AdminEmailHandler

from tenants.exceptions import all_errors
from tenants.roles import Role
from tenants.services import grant_role
from tenants.tokens import issue_token, revoke_token
from tests.factories import make_persona, make_user, unique
from tests.http.client import API, CODES, delete, put

OLD = "0" * 32


def test_codes_are_a_closed_list():
    assert {one.code for one in all_errors()} == set(CODES)
    assert all(one.status in CODES[one.code] for one in all_errors())


def test_order_of_refusals(world):
    """Each step repairs what the step before was refused for; everything after stays wrong."""
    who, api = world.alice, API("no-such-tenant")
    bad, good = "preferences/user::bob/a%0A", "preferences/user::bob/k"
    assert api.request("PATCH", bad).outcome == (401, "not_authenticated")
    api.token = "cst_wrong"
    assert api.request("PATCH", bad).outcome == (401, "invalid_token")
    api.token = who.token
    assert api.request("PATCH", bad).outcome == (405, "method_not_allowed")
    send = {"raw": b"{", "content_type": "text/plain", "headers": {"Accept": "text/html"}}
    assert api.request("PUT", bad, **send).outcome == (404, "not_found")
    assert who.request("PUT", bad, **send).outcome == (400, "invalid_key")
    assert who.request("PUT", good, **send).outcome == (403, "permission_denied")
    own = "preferences/me/limited?mode=x"
    assert who.request("PUT", own, **send).status in (415, 406)
    send["content_type"] = "application/json"
    assert who.request("PUT", own, **send).outcome == (406, "not_acceptable")
    send = {"raw": b"{" * 300_000}
    assert who.request("PUT", own, **send).outcome == (413, "too_large")
    assert who.request("PUT", own, raw=b"{").outcome == (400, "invalid_json")
    assert who.request("PUT", own, {"value": 1}).outcome == (400, "validation_error")


def test_order_within_a_write(world):
    who = world.alice
    big = "x" * 70_000
    # Form comes before the value's size, that before what governs the key.
    assert who.write("me", "staff_note", big, revision="x").code == "invalid_revision"
    assert who.write("me", "staff_note", big, ttl_seconds="x").code == "invalid_ttl"
    assert who.write("me", "staff_note", big).outcome == (413, "too_large")
    assert who.write("me", "staff_note", 1, revision=OLD).outcome == (403, "permission_denied")
    assert who.write("me", "reply_style", 1, ttl_seconds=10**9).code == "consent_required"
    assert world.bound.write("me", "banner", 1).code == "purpose_not_allowed"
    who.give("me", "support")
    refused = who.write("me", "reply_style", 1, ttl_seconds=10**9, revision=OLD)
    assert refused.outcome == (400, "invalid_value")
    refused = who.write("me", "reply_style", "brief", ttl_seconds=10**9, revision=OLD)
    assert refused.outcome == (400, "invalid_ttl")
    assert who.write("me", "reply_style", "brief", revision=OLD).code == "stale_revision"


def test_credentials(world):
    for header in ("", "Bearer", "Bearer ", "Basic YTpi", "Bearer \x7f", "Token x"):
        answer = world.stranger.get("whoami", headers={"Authorization": header})
        assert answer.status == 401
    # A login of this test's own: a token without a tenant works in every other test's, too.
    user = make_user(unique("guest"))
    grant_role(tenant=world.tenant, user=user, role=Role.MEMBER)
    token, row = issue_token(user=user)
    api = API(world.tenant.slug, token)
    assert api.get("whoami").status == 200
    assert api.get("whoami", headers={"Authorization": f"bearer {token}"}).status == 200
    revoke_token(token_id=row.pk)
    assert api.get("whoami").outcome == (401, "invalid_token")


def test_tokens_expire(world, frozen):
    user = make_user(unique("guest"))
    grant_role(tenant=world.tenant, user=user, role=Role.MEMBER)
    token, _ = issue_token(user=user, lifetime=timedelta(seconds=60))
    api = API(world.tenant.slug, token)
    frozen.move(59.999)
    assert api.get("whoami").status == 200
    frozen.move(0.001)
    assert api.get("whoami").outcome == (401, "invalid_token")


def test_sessions_need_csrf(world):
    make_persona(world.tenant, "alice")
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.force_login(make_user("alice"), backend="django.contrib.auth.backends.ModelBackend")
    api = world.stranger
    assert api.get("whoami", client=client).json["subject"] == "alice"
    with world.denied(0):
        answer = api.put("preferences/me/k", {"value": 1}, client=client)
    assert answer.outcome == (403, "csrf_failed")
    client.cookies["csrftoken"] = "a" * 32
    headers = {"X-CSRFToken": "a" * 32}
    answer = api.put("preferences/me/k", {"value": 1}, client=client, headers=headers)
    assert answer.status == 201


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "application/json; charset=latin-1"])  # fmt: skip
def test_media_types(world, content_type):
    answer = world.alice.put("preferences/me/k", {"value": 1}, content_type=content_type)
    assert answer.outcome == (415, "unsupported_media_type")
    assert answer.headers["Accept"] == "application/json"


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_content_codings(world, coding):
    headers = {"Content-Encoding": coding}
    answer = world.alice.put("preferences/me/k", {"value": 1}, headers=headers)
    assert answer.outcome == (415, "unsupported_media_type")
    assert answer.headers["Accept-Encoding"] == "identity"
    headers = {"Content-Encoding": "identity"}
    assert world.alice.put("preferences/me/k", {"value": 1}, headers=headers).status == 201


def test_accept(world):
    for accept in ("*/*", "application/*", "application/json", "text/html, */*;q=0.1",
                   "application/json; charset=utf-8", "APPLICATION/JSON"):  # fmt: skip
        assert world.alice.get("whoami", headers={"Accept": accept}).status == 200, accept
    for accept in ("text/html", "application/xml", "application/json;q=0", "*/*;q=0",
                   "application/json;q=0, */*"):  # fmt: skip
        answer = world.alice.get("whoami", headers={"Accept": accept})
        assert answer.outcome == (406, "not_acceptable"), accept


def test_request_ids(world):
    for given in ("x", "a" * 128, "!~"):
        answer = world.alice.get("whoami", headers={"X-Request-ID": given})
        assert answer.headers["X-Request-ID"] == given
    for given in ("", "a" * 129, "a b", "a\tb", "é", "a\x7f"):
        answer = world.alice.get("whoami", headers={"X-Request-ID": given})
        assert answer.headers["X-Request-ID"] != given
    world.alice.write("me", "k", headers={"X-Request-ID": "trace-1"})
    assert world.events("preference.created")[-1].request_id == "trace-1"


def test_unknown_routes(world):
    for path in ("nothing", "whoami/", "preferences/", "consents", "/api/v1/nothing",
                 "/api/v1/tenants", "/nothing", "subjects/me"):  # fmt: skip
        for who in (world.alice, world.stranger):
            answer = who.get(path, headers={"Accept": "text/html"})
            assert answer.outcome in {(404, "not_found"), (401, "not_authenticated"),
                                      (406, "not_acceptable"), (400, "invalid_key")}, path  # fmt: skip


def test_C031_answers_stay_private(world):
    # `Answer` checks the headers of each; what is left is that nobody else gets the bytes.
    secret = world.alice.write("me", "k", "canary")
    assert secret.status == 201
    for path in ("preferences/user::alice/k", "preferences?scope=user::alice", "consents/alice",
                 "subjects/alice/data"):  # fmt: skip
        assert world.alice.get(path).status == 200
        assert world.bob.get(path).status == 403
        assert world.stranger.get(path).status == 401
        assert b"canary" not in world.bob.get(path).content
    assert world.alice.read("me", "missing").status == 404


def test_C032_head_and_options(world, make_world):
    world.alice.give("me", "support")
    world.alice.write("me", "k", 1)
    world.alice.write("me", "tone", 1)
    world.alice.withdraw("me", "support")
    foreign = make_world()
    foreign.alice.write("me", "k", 1)
    paths = {
        world.alice.base + "/preferences/me/k": 200,
        world.alice.base + "/preferences/me/missing": 404,
        world.alice.base + "/preferences/me/tone": 403,
        foreign.alice.base + "/preferences/me/k": 404,
    }
    answers = []
    for path, status in paths.items():
        got, head = world.alice.get(path), world.alice.request("HEAD", path)
        assert got.status == head.status == status
        assert head.content == b""
        assert head.headers.get("ETag") == got.headers.get("ETag")
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        before = len(world.events()) + len(foreign.events())
        for api in (world.alice, world.stranger):
            option = api.request("OPTIONS", path, headers={"X-Request-ID": "same"})
            answers.append((option.status, option.content, sorted(option.headers.items())))
        assert len(world.events()) + len(foreign.events()) == before
        for method in ("POST", "PATCH", "TRACE"):
            refused = world.alice.request(method, path, {"value": 2})
            assert refused.outcome == (405, "method_not_allowed")
            allowed = set(refused.headers["Allow"].split(", "))
            assert allowed == {"GET", "PUT", "DELETE", "HEAD", "OPTIONS"}
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] == 200
    override = {"X-HTTP-Method-Override": "DELETE"}
    assert world.alice.write("me", "k", 2, headers=override).outcome == (409, "already_exists")
    assert world.alice.read("me", "k").status == 200


def test_C065_another_tenant_is_no_tenant(world, make_world):
    foreign = make_world()
    revision = foreign.alice.write("me", "k", "canary").revision
    foreign.alice.give("me", "support")
    bodies = [b"", b"{", b'{"value":1,"revision":"%s"}' % OLD.encode(), b'{"value":1}']
    requests = [
        ("GET", "preferences/user::alice/k", b""), ("HEAD", "preferences/user::alice/k", b""),
        ("DELETE", "preferences/user::alice/k", b""), ("GET", "preferences", b""),
        ("DELETE", f"preferences/user::alice/k?revision={revision}", b""),
        ("GET", "preferences?limit=0", b""), ("GET", "audit", b""),
        ("GET", "consents/alice", b""), ("GET", "consents/alice/support/history", b""),
        ("PUT", "consents/alice/support", b"{}"), ("GET", "subjects/alice/data", b""),
        ("GET", "purposes", b""), ("GET", "definitions", b""), ("GET", "whoami", b""),
        ("POST", "preferences/batch", b"{}"), ("GET", "preferences/effective", b""),
        ("PATCH", "preferences/user::alice/k", b"{}"), ("GET", "preferences/user::alice/a%0A", b""),
        *(("PUT", "preferences/user::alice/k", body) for body in bodies),
    ]  # fmt: skip
    for who in (world.bob, world.owner, world.agent):
        for method, path, body in requests:
            seen = []
            for tenant in (foreign.tenant.slug, "t-no-such-tenant", "x"):
                answer = who.request(
                    method, f"/api/v1/tenants/{tenant}/{path}", raw=body,
                    headers={"X-Request-ID": "same"},
                )  # fmt: skip
                seen.append((answer.status, answer.content, sorted(answer.headers.items())))
            assert seen[0] == seen[1] == seen[2], (method, path)
            assert seen[0][0] == (405 if method == "PATCH" else 404)
    assert foreign.events("access.denied") == []
    assert foreign.alice.read("me", "k").etag == revision


def test_denied_events(world):
    world.alice.write("me", "k", 1)
    with world.denied(0):
        world.stranger.get("whoami")
        API(world.tenant.slug, "cst_no").read("user::alice", "k")
        world.alice.write("me", "k", 1)
        world.alice.write("me", "k", 1, revision=OLD)
        world.alice.read("me", "none")
        world.alice.read("me", "a\n")
        world.alice.request("PATCH", "preferences/me/k")
        world.alice.put("preferences/me/k", raw=b"{")
    cases = [
        lambda: world.bob.read("user::alice", "k"),
        lambda: world.bob.write("user::alice", "k"),
        lambda: world.bob.forget("user::alice", "k"),
        lambda: world.bob.listing(scope="user::alice"),
        lambda: world.bob.get("consents/alice"),
        lambda: world.bob.get("consents/alice/support/history"),
        lambda: world.operator.read("me", "k"),
        lambda: world.agent.write("me", "k"),
        lambda: world.bound.write("user::bob", "k"),
        lambda: world.alice.read("me", "tone"),
        lambda: world.alice.write("me", "tone"),
        lambda: world.alice.write("me", "tone", headers={"Idempotency-Key": "x"}),
        lambda: world.bound.write("me", "banner"),
        lambda: world.bound.forget("me", "banner"),
        lambda: world.auditor.read("global", "k"),
        lambda: world.auditor.post("preferences/batch", {"operations": []}),
        lambda: world.alice.write("me", "staff_note"),
    ]
    for case in cases:
        with world.denied(1):
            assert case().status == 403
    event = world.events("access.denied")[0]
    assert (event.actor, event.subject, event.scope, event.key) == (
        "bob", "alice", "user::alice", "k",
    )  # fmt: skip


def test_C051_actors(world):
    world.operator.write("global", "a")
    world.bound.write("me", "b")
    world.stranger.write("me", "c")
    world.alice.write("me", "d", ttl_seconds=60)
    events = world.events("preference.created")
    assert [(one.actor, one.on_behalf_of) for one in events] == [
        ("operator", None), ("bound", "alice"), ("alice", None),
    ]  # fmt: skip
    assert all(one.actor_id for one in events)


def test_C051_one_thread_many_actors(world, frozen):
    """A session, a bound token, nobody, a refusal and a command, one after the other on one thread."""
    boss = make_user("boss")
    grant_role(tenant=world.tenant, user=boss, role=Role.OWNER)
    client = Client(raise_request_exception=False)
    client.force_login(boss, backend="django.contrib.auth.backends.ModelBackend")
    nobody = API(world.tenant.slug)
    for _ in range(2):
        more = {"client": client, "headers": {"X-Request-ID": "by-session"}}
        body = {"value": 1, "ttl_seconds": 60}
        assert nobody.put(f"preferences/project::{unique('p')}/k", body, **more).status == 201
        assert world.bound.write("me", unique("k"), 1).status == 201
        assert nobody.write("project::x", "k").outcome == (401, "not_authenticated")
        assert API(world.tenant.slug, "cst_no").write("global", "k").status == 401
        assert world.bob.read("user::alice", "k").status == 403
        frozen.move(60)
        call_command("purge_expired")
        assert world.alice.write("me", unique("k"), 1).status == 201
    events = world.events("preference.created", "preference.expired", "access.denied")
    assert [(one.action.partition(".")[2], one.actor, one.on_behalf_of) for one in events] == [
        ("created", "boss", None), ("created", "bound", "alice"), ("denied", "bob", None),
        ("expired", "system", None), ("created", "alice", None),
    ] * 2  # fmt: skip
    assert [one.request_id for one in events if one.actor == "boss"] == ["by-session"] * 2
    assert all(one.actor_id for one in events if one.actor != "system")
    assert all(one.request_id is None for one in events if one.actor == "system")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
def test_C053_the_trail_takes_nothing_over_http(world, method):
    world.alice.write("me", "k", 1)
    (event,) = world.events("preference.created")
    for who in (world.owner, world.auditor):
        answer = who.request(method, "audit", {"action": "x"})
        assert answer.outcome == (405, "method_not_allowed")
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
        assert who.request(method, f"audit/{event.pk}", {}).outcome == (404, "not_found")
    assert world.events("preference.created") == [event]


@pytest.fixture
def fail_at_commit(world, owner_does):
    """Let every change of this tenant's records fail when all has been done but the commit."""
    name = f"fail_{world.tenant.pk}"
    owner_does(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'canary'; END $$"
    )
    tables = ["consentful_preference", "consentful_consent_entry"]

    @contextlib.contextmanager
    def fail():
        for table in tables:
            owner_does(
                f"CREATE CONSTRAINT TRIGGER {name} AFTER INSERT OR UPDATE OR DELETE ON {table}"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
                f" WHEN (consentful_tenant() = {world.tenant.pk}) EXECUTE FUNCTION {name}()"
            )
        try:
            yield
        finally:
            for table in tables:
                owner_does(f"DROP TRIGGER {name} ON {table}")

    yield fail
    owner_does(f"DROP FUNCTION {name}() CASCADE")


def test_C055_what_fails_at_the_commit_was_never_there(world, fail_at_commit):
    """The event was written by then; it goes with the change."""
    world.alice.give("me", "support")
    revision = world.alice.write("me", "k", 1).revision
    assert world.bob.status_of("me", "ads") == "none"
    before = len(world.events())
    once = {"Idempotency-Key": "once"}
    sends = [
        lambda: world.alice.write("me", "new", 1),
        lambda: world.alice.write("me", "k", 2, revision=revision),
        lambda: world.alice.write("me", "k", 2, query={"mode": "upsert"}, headers=once),
        lambda: world.alice.forget("me", "k"),
        lambda: world.alice.batch(put("me", "a", 1), delete("me", "k")),
        lambda: world.alice.withdraw("me", "support"),
        lambda: world.bob.give("me", "ads"),
    ]
    with fail_at_commit():
        for send in sends:
            answer = send()
            assert answer.outcome == (503, "store_unavailable")
            assert answer.headers["Retry-After"]
            assert b"canary" not in answer.content
        alone = world.alice.batch(put("me", "a", 1), delete("me", "k"), atomic=False)
        assert [one["status"] for one in alone.json["results"]] == [503, 503]
    assert len(world.events()) == before
    assert world.alice.read("me", "k").etag == revision
    assert world.alice.listing().keys == ["k"]
    assert world.alice.status_of("me", "support") == "given"
    assert world.bob.status_of("me", "ads") == "none"
    # Nothing was kept for the repetition either.
    again = world.alice.write("me", "k", 2, query={"mode": "upsert"}, headers=once)
    assert "Idempotency-Replayed" not in again.headers
    assert again.status == 200


def test_C055_no_event_of_what_was_undone(world):
    revision = world.alice.write("me", "k", 1).revision
    before = len(world.events())
    body = {"operations": [
        {"op": "put", "scope": "me", "key": "a", "value": 1},
        {"op": "delete", "scope": "me", "key": "k"},
        {"op": "put", "scope": "me", "key": "z", "value": 1, "revision": OLD},
    ]}  # fmt: skip
    assert world.alice.post("preferences/batch", body).status == 409
    assert len(world.events()) == before
    assert world.alice.read("me", "k").etag == revision
    assert world.alice.read("me", "a").status == 404


def test_C055_no_change_without_its_event(world, owner_does):
    world.alice.write("me", "k", 1)
    world.alice.give("me", "support")
    name = f"break_{world.tenant.pk}"
    owner_does(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'canary'; END $$"
    )
    owner_does(
        f"CREATE TRIGGER {name} BEFORE INSERT ON consentful_audit_event FOR EACH ROW"
        f" WHEN (NEW.tenant_id = {world.tenant.pk}) EXECUTE FUNCTION {name}()"
    )
    try:
        answers = [
            world.alice.write("me", "new", 1),
            world.alice.write("me", "k", 2, query={"mode": "upsert"}),
            world.alice.forget("me", "k"),
            world.alice.withdraw("me", "support"),
            world.alice.batch({"op": "put", "scope": "me", "key": "b", "value": 1}),
            # Without its event a refusal is no answer either.
            world.alice.read("me", "banner"),
        ]
    finally:
        owner_does(f"DROP FUNCTION {name}() CASCADE")
    for answer in answers:
        assert answer.outcome == (503, "store_unavailable")
        assert answer.headers["Retry-After"]
        assert b"canary" not in answer.content
    assert [(one["key"], one["value"]) for one in world.alice.listing().json["results"]] == [
        ("k", 1)
    ]
    assert world.alice.status_of("me", "support") == "given"


def test_C117_no_values_in_the_log(world, caplog, monkeypatch):
    loggers = [logging.getLogger(name) for name in ("consentful", "django", "django.request")]
    for logger in loggers:
        monkeypatch.setattr(logger, "propagate", True)
    canary = "canary-7f3"
    with caplog.at_level(logging.DEBUG, logger="consentful"):
        world.alice.write("me", "k", canary)
        world.alice.write("me", "k", canary)
        world.alice.write("me", "k", canary, ttl_seconds=canary)
        world.alice.write("me", "big", canary * 10_000)
        world.alice.write("me", "theme", canary)
        world.alice.put("preferences/me/k", raw=canary.encode())
        API(world.tenant.slug, f"cst_{canary}").get("whoami")
        monkeypatch.setattr("preferences.views.put_preference", _fail(canary))
        answer = world.alice.write("me", "k", canary)
        assert answer.outcome == (500, "internal_error")
        assert canary.encode() not in answer.content
    ours = [record for record in caplog.records if record.name.startswith("consentful")]
    assert ours
    assert all(canary not in record.getMessage() and not record.exc_info for record in ours)


class Reporter(AdminEmailHandler):
    """Django's report of a fault to its operators, kept instead of sent."""

    def __init__(self):
        super().__init__(include_html=True)
        self.setLevel(logging.ERROR)
        self.reports = []

    def send_mail(self, subject, message, *args, **kwargs):
        self.reports.append("\n".join((subject, message, kwargs["html_message"])))


def test_C117_no_values_in_reports_by_mail(world, monkeypatch, settings):
    """A host may well have faults reported with everything that Django knows of them."""
    settings.ADMINS = ["ann@consentful.example"]
    reporter = Reporter()
    for name in ("django.request", "consentful.faults"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [reporter])
    canary, token = "canary-7f3", world.alice.token
    monkeypatch.setattr("preferences.views.put_preference", _fail(canary))
    answer = world.alice.write("me", "k", canary, tags=[canary])
    assert answer.outcome == (500, "internal_error")
    (report,) = reporter.reports
    assert answer.json["request_id"] in report
    assert canary not in report
    assert token not in report


def _fail(words):
    def fail(**more):
        raise RuntimeError(words)

    return fail

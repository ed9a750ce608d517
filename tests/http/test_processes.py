"""What only processes of their own show: their memory, what they write, what the other one knows."""

import contextlib
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection

from tests.conftest import run_service

PIECE = b" " * 65_536
MOST = 256 * 1024


@pytest.fixture(scope="module")
def service(database):
    """A service of this module's own: its base URL and its process, which leads a group."""
    with run_service(
        "--no-housekeeping",
        DJANGO_SETTINGS_MODULE="tests.settings",
        TEST_DATABASE=database,
        WEB_CONCURRENCY="2",
    ) as (url, process):
        yield url, process


@pytest.fixture(scope="module")
def client():
    """A client that makes a connection for each request, so that workers take turns."""
    limits = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(timeout=20, limits=limits) as made:
        yield made


@pytest.fixture
def call(service, client):
    """Send one request to the service as one of the world's personas."""

    def send(who, method, path, *, base=service[0], headers=(), **more):
        known = {"Authorization": f"Bearer {who.token}"}
        return client.request(
            method, f"{base}{who.base}/{path}", headers={**known, **dict(headers)}, **more
        )

    return send


# Memory ----------------------------------------------------------------------------------------


def members(process):
    """Return the processes of a group."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((place / "stat").read_text().rpartition(")")[2].split()[2]) == process.pid:
                found.append(place)
    return found


def forget_peaks(process):
    for place in members(process):
        (place / "clear_refs").write_text("5")


def peak(process):
    """Return the most kilobytes that the processes of a group held since their peaks were forgotten."""
    lines = [line for place in members(process)
             for line in (place / "status").read_text().splitlines()]  # fmt: skip
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def send_large(url, who, megabytes, *, is_chunked):
    """Send so many megabytes to one record, piece by piece; return status and code."""
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    total = megabytes * 1024 * 1024
    line.putrequest("PUT", f"{who.base}/preferences/me/large")
    line.putheader("Authorization", f"Bearer {who.token}")
    line.putheader("Content-Type", "application/json")
    if is_chunked:
        line.putheader("Transfer-Encoding", "chunked")
    else:
        line.putheader("Content-Length", str(total))
    pieces = [b'{"value":"', *[PIECE] * (total // len(PIECE) - 1), b" " * (len(PIECE) - 12), b'"}']
    line.endheaders(iter(pieces), encode_chunked=is_chunked)
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer.status, json.loads(body)["code"], json.loads(body)["detail"]


@pytest.mark.parametrize("is_chunked", [True, False])
def test_C029_large_bodies_take_no_memory(service, world, call, is_chunked):
    url, process = service
    assert call(world.alice, "PUT", "preferences/me/k", json={"value": 1}).status_code == 201
    send = partial(send_large, url, world.alice, is_chunked=is_chunked)
    assert send(1)[:2] == (413, "too_large")
    forget_peaks(process)
    before = peak(process)
    for megabytes in (8, 50):
        assert send(megabytes)[:2] == (413, "too_large")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, [8] * 8))
    assert {answer[:2] for answer in answers} == {(413, "too_large")}
    assert all(str(MOST) in answer[2] for answer in answers)
    assert peak(process) - before < 25_000
    assert call(world.alice, "GET", "preferences/me/large").status_code == 404
    assert call(world.alice, "GET", "preferences/me/k").json()["value"] == 1


# What another process knows --------------------------------------------------------------------


def test_C041_a_withdrawal_is_known_to_every_process(world, service, call, server):
    """Read often enough that each worker has been asked before."""
    alice, bound = world.alice, world.bound
    alice.give("me", "support")
    etag = alice.write("me", "tone", "canary").headers["ETag"]
    page = bound.listing(scope="me", limit=1)

    def everywhere(method, path, **headers):
        for base in [service[0]] * 8 + [server]:
            yield call(bound, method, path, base=base, headers=headers)

    for _ in range(3):
        for answer in everywhere("GET", "preferences/me/tone"):
            assert answer.status_code == 200
        for answer in everywhere("GET", "preferences/me/tone", **{"If-None-Match": etag}):
            assert answer.status_code == 304
        assert call(alice, "PUT", "consents/me/support",
                    json={"decision": "withdrawn"}).status_code == 200  # fmt: skip
        for answer in everywhere("GET", "preferences/me/tone", **{"If-None-Match": etag}):
            assert (answer.status_code, answer.json()["code"]) == (403, "consent_required")
            assert "ETag" not in answer.headers
        for path in ("preferences?scope=me", "preferences/effective?scope=me"):
            for answer in everywhere("GET", path):
                assert "canary" not in answer.text
                assert answer.json()["withheld"] == [
                    {"purpose": "support", "reason": "consent_required"}
                ]
        assert page.json["next"] is None
        assert alice.give("me", "support").status == 200


@pytest.mark.parametrize("is_committed", [True, False])
def test_C047_what_is_not_committed_decides_nothing(world, service, call, is_committed):
    """Another process reads while a withdrawal waits for its commit, and again after it."""
    alice, bound = world.alice, world.bound
    alice.give("me", "support")
    alice.write("me", "tone", 1)
    for _ in range(4):
        assert call(bound, "GET", "preferences/me/tone").status_code == 200
    connection.ensure_connection()
    password = connection.settings_dict["PASSWORD"] or None
    with psycopg.connect(connection.connection.info.dsn, password=password) as pending:
        pending.execute("SELECT consentful_enter(%s, '{}', '{alice}', true)", [world.tenant.pk])
        pending.execute(
            "INSERT INTO consentful_consent_entry (tenant_id, subject_id, purpose_id, decision,"
            " actor, method, sequence, entry, at)"
            " SELECT tenant_id, subject_id, purpose_id, 'withdrawn', 'alice', 'user_confirmed', 0,"
            " '', now() FROM consentful_consent_state WHERE tenant_id = %s",
            [world.tenant.pk],
        )
        for who in (alice, bound):
            assert call(who, "GET", "preferences/me/tone").status_code == 200
            assert who.read("me", "tone").status == 200
        if is_committed:
            pending.commit()
        else:
            pending.rollback()
        expected = 403 if is_committed else 200
        for _ in range(4):
            for who in (alice, bound):
                assert call(who, "GET", "preferences/me/tone").status_code == expected
                assert who.read("me", "tone").status == expected
    assert world.alice.status_of("me", "support") == ("withdrawn" if is_committed else "given")


def test_C031_no_answer_is_stored(world, service, client, call):
    """Every kind of answer of the real service, those to strangers included."""
    alice, url = world.alice, service[0]
    etag = call(alice, "PUT", "preferences/me/k", json={"value": "canary"}).headers["ETag"]
    paths = ["preferences/me/k", "preferences", "subjects/me/data", "consents/me", "whoami",
             "preferences/me/none", "preferences/me/tone", "preferences/user::bob/k", "nothing",
             "preferences/effective?scope=me", "consents/me/support/history", "audit",
             "preferences/me/%FF", "preferences?limit=0"]  # fmt: skip
    seen = set()
    for path in paths:
        for method in ("GET", "HEAD", "OPTIONS", "PATCH", "PUT", "DELETE"):
            for token in (alice.token, world.bob.token, None, "cst_no"):
                if method in ("PUT", "DELETE") and token == alice.token:
                    continue
                headers = {"If-None-Match": etag} if method == "GET" else {}
                if token:
                    headers["Authorization"] = f"Bearer {token}"
                answer = client.request(method, f"{url}{alice.base}/{path}", headers=headers)
                seen.add(answer.status_code)
                assert answer.headers["Cache-Control"] == "private, no-store", (method, path)
                vary = {name.strip() for name in answer.headers["Vary"].split(",")}
                assert {"Authorization", "Cookie"} <= vary, (method, path)
                assert len(answer.headers.get_list("X-Request-ID")) == 1
                if token != alice.token:
                    assert "canary" not in answer.text
                    assert etag not in answer.headers.get("ETag", "")
    assert {200, 304, 400, 401, 403, 404, 405} <= seen


# What is written -------------------------------------------------------------------------------


def test_C117_neither_the_service_nor_its_database_writes_a_value(world, service, call, owner_does):
    """Success, refusals, and a constraint whose error of the database shows the whole row."""
    _, process = service
    canary, alice = "canary-7f3a", world.alice
    log = Path(settings.DATA_DIR) / "postgres.log"
    is_embedded = "embedded" in connection.settings_dict["OPTIONS"]
    start = log.stat().st_size if is_embedded else 0
    name = f"refuse_{world.tenant.pk}"
    send = partial(call, alice, "PUT", "preferences/me/k")
    statuses = [
        send(json={"value": canary, "tags": [canary], "metadata": {canary: canary}}).status_code,
        send(json={"value": canary}).status_code,
        send(json={"value": canary, "ttl_seconds": canary}).status_code,
        send(json={"value": canary, canary: canary}).status_code,
        send(content=canary.encode()).status_code,
        send(json={"value": canary * 10_000}).status_code,
        send(json={"value": canary * 100_000}).status_code,
        call(alice, "PUT", "preferences/me/theme", json={"value": canary}).status_code,
        call(alice, "PUT", "preferences/me/k", json={"value": canary},
             headers={"Authorization": f"Bearer cst_{canary}"}).status_code,
    ]  # fmt: skip
    owner_does(
        f"ALTER TABLE consentful_preference ADD CONSTRAINT {name}"
        f" CHECK (tenant_id <> {world.tenant.pk}) NOT VALID"
    )
    try:
        failed = [
            call(alice, "PUT", "preferences/me/other", json={"value": canary}),
            call(alice, "PUT", "preferences/me/k?mode=upsert", json={"value": canary}),
            call(alice, "POST", "preferences/batch", json={"operations": [
                {"op": "put", "scope": "me", "key": "other", "value": canary}]}),
        ]  # fmt: skip
    finally:
        owner_does(f"ALTER TABLE consentful_preference DROP CONSTRAINT {name}")
    assert statuses == [201, 409, 400, 400, 415, 413, 413, 400, 401]
    for answer in failed:
        assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
        assert canary not in answer.text
        assert name not in answer.text
    request_id = failed[0].headers["X-Request-ID"]
    # The service writes into a file that has no name any more.
    written = Path(f"/proc/{process.pid}/fd/2")
    deadline = time.monotonic() + 10
    while request_id not in (text := written.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert request_id in text
    assert canary not in text
    assert alice.token not in text
    if is_embedded:
        with log.open() as stream:
            stream.seek(start)
            said = stream.read()
        assert canary not in said

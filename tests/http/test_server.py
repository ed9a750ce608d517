"""What only a real server shows: chunked bodies, repeated header lines, raw paths."""

import http.client
import json
from urllib.parse import quote, urlsplit

import pytest


@pytest.fixture
def send(server, world):
    """Send one request to the running service as alice; return status, headers and body."""
    token, base = world.alice.token, world.alice.base

    def send(method, path, body=None, headers=(), chunked=False):
        connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=20)
        try:
            connection.putrequest(method, f"{base}/{path}")
            connection.putheader("Authorization", f"Bearer {token}")
            for name, value in headers:
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Type", "application/json")
                name, value = ("Transfer-Encoding", "chunked") if chunked else (
                    "Content-Length", str(len(body)))  # fmt: skip
                connection.putheader(name, value)
            connection.endheaders(body, encode_chunked=chunked)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    return send


def test_C029_chunked_bodies(send):
    most = 256 * 1024
    body = b'{"value":1}'
    status, _, _ = send("PUT", "preferences/me/k", body, chunked=True)
    assert status == 201
    body += b" " * (most - len(body))
    assert send("PUT", "preferences/me/l", body, chunked=True)[0] == 201
    for chunked in (True, False):
        status, _, answer = send("PUT", "preferences/me/m", body + b" ", chunked=chunked)
        assert (status, json.loads(answer)["code"]) == (413, "too_large")
    assert send("GET", "preferences/me/m")[0] == 404


def test_C027_repeated_header_lines(send):
    old = json.loads(send("PUT", "preferences/me/k", b'{"value":1}')[2])["revision"]
    body = json.dumps({"value": 2, "revision": old}).encode()
    new = json.loads(send("PUT", "preferences/me/k", body)[2])["revision"]
    lines = [("If-Match", f'"{old}"'), ("If-Match", f'"{new}"')]
    assert send("PUT", "preferences/me/k", b'{"value":3}', lines)[0] == 200


def test_raw_paths(send):
    assert send("PUT", "preferences/me/caf%C3%A9", b'{"value":1}')[0] == 201
    assert json.loads(send("GET", "preferences/me/caf%C3%A9")[2])["key"] == "café"
    for path in ("preferences/me/caf%E9", "preferences/me/%FF", "preferences/me/k%0A"):
        assert send("GET", path)[0] == 400
    status, _, answer = send("GET", "preferences/repo%3A%3Aa%2Fb/k")
    assert (status, json.loads(answer)["code"]) == (404, "not_found")


def test_C011_keys_that_look_like_broken_bytes(send):
    """A percent sign and two digits are ordinary characters of a key; a lone byte is none."""
    for number, key in enumerate(("%FF", "100%AB", "caf%C3%A9", "%25", "é%E9", "%00")):
        path = f"preferences/me/{quote(key, safe='')}"
        assert send("PUT", path, b'{"value":%d}' % number)[0] == 201
        status, _, body = send("GET", path)
        assert (status, json.loads(body)["key"], json.loads(body)["value"]) == (200, key, number)
    for broken in ("%FF", "a%25FF%FF", "caf%E9", "%C3%28", "%ED%A0%80", "%F8%88%80%80%80"):
        for path in (f"preferences/me/{broken}", f"preferences/user::{broken}/k",
                     f"consents/{broken}", f"subjects/{broken}/data"):  # fmt: skip
            assert send("GET", path)[0] == 400, path


def test_C011_dot_segments_stay_what_they_are(send):
    send("PUT", "preferences/me/k", b'{"value":1}')
    for path in ("preferences/me/.", "preferences/me/..", "preferences/./me/k",
                 "preferences/me/../me/k", "preferences/project::x/../me/k", "preferences//me/k",
                 "preferences/me//k", "preferences/me/k/", "preferences/me/%2E%2E"):  # fmt: skip
        for method in ("GET", "PUT"):
            status, headers, _ = send(method, path, b'{"value":2}' if method == "PUT" else None)
            assert status in (400, 404), (method, path)
            assert "Location" not in headers
    assert json.loads(send("GET", "preferences/me/k")[2])["value"] == 1


def test_queries_are_utf8(send):
    for query in ("scope=user::%FF", "tag=%FF", "key_prefix=a%C3", "purpose=%E9", "%FF=1"):
        for path in ("preferences", "preferences/effective", "preferences/me/k"):
            status, _, answer = send("GET", f"{path}?{query}")
            assert status in (400, 403), (path, query)
            assert b"\xef\xbf\xbd" not in answer
    assert send("DELETE", "preferences/me/k?revision=%FF")[0] == 400


def test_empty_answers(send):
    status, headers, body = send("PUT", "preferences/me/k", b'{"value":1}')
    status, headers, body = send("DELETE", "preferences/me/k")
    assert (status, body) == (204, b"")
    assert "Content-Type" not in headers
    assert headers["Cache-Control"] == "private, no-store"

"""Over HTTP, against the real service."""

import httpx
import pytest


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_sound_service_says_nothing_but_ok(server: str, path: str) -> None:
    answer = httpx.get(server + path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/api/v1/schema/", "/api/v1/docs/", "/api/v1/keys"]
)
def test_public_pages_answer_any_method(server: str, path: str) -> None:
    answer = httpx.options(server + path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = httpx.request(method, server + path, json={})
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert httpx.get(server + path).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/admin/login/", "/nowhere"])
def test_head_has_the_headers_of_get_and_no_body(server: str, path: str) -> None:
    with httpx.Client(base_url=server) as client:
        head = client.head(path)
        get = client.get(path)  # on the same connection: a body would be in its way
    assert head.content == b""
    assert head.status_code == get.status_code

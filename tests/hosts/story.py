"""The main story, told to any project over HTTP: consent, a preference, a withdrawal, its end."""

from typing import Any

import httpx


class Teller:
    """One person's credential at one project's API."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base
        self.token = token

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        answer = httpx.request(method, self.base + path, json=body, headers=headers, timeout=60)
        kind = "application/problem+json" if answer.status_code >= 400 else "application/json"
        if answer.content:
            assert answer.headers["Content-Type"] == kind, answer.text
        assert answer.headers["X-Request-ID"]
        assert answer.headers["Cache-Control"] == "private, no-store"
        return answer

    def outcome(self, method: str, path: str, body: Any = None) -> tuple[int, str | None]:
        answer = self(method, path, body)
        return answer.status_code, answer.json().get("code") if answer.content else None


def tell_story(api: Teller, *, subject: str) -> None:
    """Live through one preference of the person behind `api`, and leave nothing of it."""
    assert api("GET", "whoami").json()["subject"] == subject
    assert api.outcome("GET", "preferences/me/slicing") == (403, "consent_required")

    given = api("PUT", "consents/me/comfort", {"decision": "given", "version": 1})
    assert (given.status_code, given.json()["status"]) == (200, "given")

    first = api("PUT", "preferences/me/slicing", {"value": "thin"})
    assert (first.status_code, first.json()["scope"]) == (201, f"user::{subject}")
    revision = first.json()["revision"]
    read = api("GET", "preferences/me/slicing")
    assert (read.json()["value"], read.headers["ETag"]) == ("thin", f'"{revision}"')
    assert read.json()["updated_at"].endswith("Z")

    change = {"value": "thick", "revision": revision}
    assert api("PUT", "preferences/me/slicing", change).status_code == 200
    assert api.outcome("PUT", "preferences/me/slicing", change) == (409, "stale_revision")
    assert api.outcome("PUT", "preferences/me/slicing", {"value": "thin"}) == (
        409,
        "already_exists",
    )

    listed = api("GET", "preferences").json()
    assert ([one["value"] for one in listed["results"]], listed["next"]) == (["thick"], None)
    assert listed["previous"] is None

    withdrawn = api("PUT", "consents/me/comfort", {"decision": "withdrawn"})
    assert withdrawn.json()["status"] == "withdrawn"
    assert api.outcome("GET", "preferences/me/slicing") == (403, "consent_required")
    assert api.outcome("DELETE", "preferences/me/slicing") == (204, None)
    (consent,) = api("GET", "subjects/me/data").json()["consents"]
    assert [one["decision"] for one in consent["history"]] == ["given", "withdrawn"]

    assert api.outcome("GET", "no/such/route") == (404, "not_found")
    assert api("GET", "whoami", Accept="text/html").status_code == 406

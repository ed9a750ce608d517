"""A small client of the HTTP contract, in-process."""

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Barrier
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connections
from django.test import Client

#: The closed list of codes, by the statuses they come with.
CODES: dict[str, set[int]] = {
    "invalid_json": {400}, "invalid_value": {400}, "invalid_scope": {400}, "invalid_key": {400},
    "invalid_revision": {400}, "invalid_ttl": {400}, "undeclared_key": {400},
    "duplicate_address": {400}, "validation_error": {400}, "not_authenticated": {401},
    "invalid_token": {401}, "permission_denied": {403}, "csrf_failed": {403},
    "consent_required": {403}, "purpose_not_allowed": {403}, "objected": {403},
    "restricted": {403}, "not_found": {404},
    "method_not_allowed": {405}, "not_acceptable": {406}, "stale_revision": {409},
    "already_exists": {409, 412}, "invalid_transition": {409}, "length_required": {411}, "too_large": {413},
    "unsupported_media_type": {415}, "idempotency_mismatch": {422}, "failed_dependency": {424},
    "throttled": {429}, "internal_error": {500}, "store_unavailable": {503},
}  # fmt: skip


class Answer:
    """What came back, checked against what every answer must be."""

    def __init__(self, response: Any, method: str, path: str) -> None:
        self.status: int = response.status_code
        self.headers = response.headers
        # A document that is streamed has none of its own in-process.
        self.content: bytes = (
            response.getvalue() if getattr(response, "streaming", False) else response.content
        )
        self._check(method, path)

    def __repr__(self) -> str:
        return f"<{self.status} {self.content[:500]!r}>"

    @cached_property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.content)

    @property
    def code(self) -> str | None:
        """The code of a refusal."""
        return self.json.get("code") if self.status >= 400 and self.content else None

    @property
    def outcome(self) -> tuple[int, str | None]:
        """Status and code, which a test compares at once."""
        return self.status, self.code

    @property
    def etag(self) -> str:
        """The revision in the ETag."""
        tag: str = self.headers["ETag"]
        assert tag[0] == tag[-1] == '"'
        return tag[1:-1]

    @property
    def revision(self) -> str:
        """The revision of a record, which its ETag must agree with."""
        revision: str = self.json["revision"]
        assert self.etag == revision
        return revision

    @property
    def keys(self) -> list[str]:
        """The keys of a list."""
        return [one["key"] for one in self.json["results"]]

    def _check(self, method: str, path: str) -> None:
        headers = self.headers
        assert 1 <= len(headers["X-Request-ID"]) <= 128
        if "/tenants/" in path:
            assert headers["Cache-Control"] == "private, no-store"
            vary = {name.strip().lower() for name in headers["Vary"].split(",")}
            assert {"authorization", "cookie"} <= vary
        kind = headers.get("Content-Type", "")
        assert "html" not in kind
        if self.status >= 400 and method != "HEAD":
            assert kind == "application/problem+json"
            body = self.json
            assert body["status"] == self.status
            assert self.status in CODES[body["code"]]
            assert body["type"].endswith(f"#{body['code']}")
            assert body["title"]
            assert body["detail"]
            assert body["request_id"] == headers["X-Request-ID"]
            for error in body.get("errors", ()):
                assert set(error) == {"pointer", "code", "detail"}
        elif self.content:
            assert kind == "application/json"
        if self.status == 401:
            assert headers["WWW-Authenticate"].startswith("Bearer")
        if self.status == 405:
            assert headers["Allow"]


class API:
    """Requests of one caller to one tenant."""

    def __init__(self, tenant: str, token: str | None = None) -> None:
        self.base = f"/api/v1/tenants/{tenant}"
        self.token = token

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        query: Any = None,
        client: Client | None = None,
    ) -> Answer:
        """Send one request; `path` below the tenant, already percent-encoded."""
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        if query:
            path = f"{path}?{urlencode(query, doseq=True)}"
        if not path.startswith("/api/"):
            path = f"{self.base}/{path}"
        known = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if method in ("PUT", "POST") and not data:
            known["Content-Type"] = content_type  # Django's client sends none without a body
        response = (client or Client(raise_request_exception=False)).generic(
            method,
            path,
            data,
            content_type=content_type,
            headers={**known, **(headers or {})},
        )
        return Answer(response, method, path)

    def get(self, path: str, **more: Any) -> Answer:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.request("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.request("PUT", path, body, **more)

    def delete(self, path: str, **more: Any) -> Answer:
        return self.request("DELETE", path, **more)

    # Preferences -------------------------------------------------------------------------------

    def write(self, scope: str, key: str, value: Any = 1, *, query: Any = None,
              headers: dict[str, str] | None = None, **members: Any) -> Answer:  # fmt: skip
        body = {"value": value, **members}
        return self.put(address(scope, key), body, query=query, headers=headers)

    def read(self, scope: str, key: str, **more: Any) -> Answer:
        return self.get(address(scope, key), **more)

    def forget(self, scope: str, key: str, **more: Any) -> Answer:
        return self.delete(address(scope, key), **more)

    def listing(self, **query: Any) -> Answer:
        return self.get("preferences", query=query)

    def batch(self, *operations: dict[str, Any], atomic: bool | None = None, **more: Any) -> Answer:
        body: dict[str, Any] = {"operations": list(operations)}
        if atomic is not None:
            body["atomic"] = atomic
        return self.post("preferences/batch", body, **more)

    def pages(
        self, limit: int, between: Callable[[], None] = lambda: None, **query: Any
    ) -> list[Any]:
        """Return every row of a list, page by page."""
        answer = self.listing(limit=limit, **query)
        rows = list(answer.json["results"])
        while (following := answer.json["next"]) is not None:
            between()
            answer = self.get(following.partition("testserver")[2])
            assert answer.status == 200
            rows.extend(answer.json["results"])
        return rows

    # Consent -----------------------------------------------------------------------------------

    def decide(self, subject: str, purpose: str, decision: str, **members: Any) -> Answer:
        more = {name: members.pop(name) for name in ("headers", "query") if name in members}
        return self.put(
            f"consents/{quote(subject, safe='')}/{purpose}",
            {"decision": decision, **members},
            **more,
        )

    def give(self, subject: str, purpose: str, version: int = 1, **members: Any) -> Answer:
        return self.decide(subject, purpose, "given", version=version, **members)

    def withdraw(self, subject: str, purpose: str, **members: Any) -> Answer:
        return self.decide(subject, purpose, "withdrawn", **members)

    def status_of(self, subject: str, purpose: str) -> str:
        states = self.get(f"consents/{subject}").json["results"]
        return next(one["status"] for one in states if one["purpose"] == purpose)


def address(scope: str, key: str) -> str:
    """Return the path of one record, percent-encoded."""
    return f"preferences/{quote(scope, safe='/:')}/{quote(key, safe='')}"


def put(scope: str, key: str, value: Any = 1, **members: Any) -> dict[str, Any]:
    """Return a batch's put."""
    return {"op": "put", "scope": scope, "key": key, "value": value, **members}


def get(scope: str, key: str) -> dict[str, Any]:
    """Return a batch's get."""
    return {"op": "get", "scope": scope, "key": key}


def delete(scope: str, key: str, **members: Any) -> dict[str, Any]:
    """Return a batch's delete."""
    return {"op": "delete", "scope": scope, "key": key, **members}


def race[T](jobs: Iterable[Callable[[], T]]) -> list[T]:
    """Run the jobs at once, each in a thread with its own connection; their results in order."""
    jobs = list(jobs)
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        try:
            barrier.wait(timeout=30)
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))

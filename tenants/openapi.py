"""
How the OpenAPI document is made: from what a view says about itself, plus what all of them share.

Holds no schema of what is stored; those stand in each app's `openapi.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from tenants.exceptions import (
    AlreadyExists,
    InternalError,
    NotAcceptable,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    ServiceError,
    StoreUnavailable,
    ValidationError,
)

type Schema = Mapping[str, Any]

PROBLEM: Schema = {
    "type": "object",
    "description": "A refusal (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
        "purpose": {"type": ["string", "null"]},
        "current": {"type": ["object", "null"]},
        "results": {"type": "array", "items": {"type": "object"}},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {"type": "string"},
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}

#: What any request below a tenant can be answered.
ALWAYS: tuple[type[ServiceError], ...] = (
    ValidationError,
    NotAuthenticated,
    PermissionDenied,
    NotFound,
    NotAcceptable,
    InternalError,
    StoreUnavailable,
)

ENTITY_TAGS: Schema = {
    "type": "string",
    "pattern": r'^(\*|(W/)?"[!#-~]*"(, (W/)?"[!#-~]*")*)$',
}

#: Of each request header, what it is for and what it may hold.
HEADERS: Mapping[str, tuple[str, Schema]] = {
    "If-Match": (
        "Revisions between double quotes, or *: replace or delete only one of these.",
        ENTITY_TAGS,
    ),
    "If-None-Match": ("Revisions between double quotes, or *.", ENTITY_TAGS),
    "Idempotency-Key": (
        "A repeat with the same key within 24 hours is answered alike.",
        {"type": "string", "pattern": "^[!-~]{1,255}$"},
    ),
}

QUERY: Mapping[str, Schema] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    "reason": {"type": "string", "minLength": 1, "maxLength": 500},
    "format": {"type": "string", "enum": ["json", "html"], "default": "json"},
    "mode": {"type": "string", "enum": ["upsert"]},
    "revision": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "after": {"type": "integer", "minimum": 0},
    "archived": {"type": "boolean", "default": False},
    "diverse": {"type": "boolean", "default": False},
    # Something to see in it, and no control character.
    "q": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\x9f]*$",
    },
    "term": {"type": "string", "minLength": 1, "maxLength": 100},
    "since": {"type": "string", "format": "date-time"},
    "until": {"type": "string", "format": "date-time"},
}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """
    What one method of a view takes and answers.

    Attributes:
        answers: schema by status of every 2xx and 304; None for one without a body.
        body: schema of the JSON body.
        pages: media types that its 200 may have instead of JSON, for people to read.
        query: schemas of its query parameters that mean something else here than in `QUERY`.
        refusals: errors beyond those that every operation has.
        request_headers: of `HEADERS`, those that it reads.
        required_query: names of query parameters that must stand there.
        answer_headers: names that its 2xx answers may carry.
        links: by name, what may follow its 2xx answers with a body (OpenAPI's link objects).
    """

    summary: str
    answers: Mapping[int, Schema | None]
    body: Schema | None = None
    pages: Sequence[str] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    refusals: Sequence[type[ServiceError]] = field(default=())
    request_headers: Sequence[str] = ()
    required_query: Sequence[str] = ()
    answer_headers: Sequence[str] = ()
    links: Mapping[str, Schema] = field(default_factory=dict)


def named(name: str, schema: Schema) -> Schema:
    """Return a schema that the document lists under `name` among its components."""
    return {"x-component": name, **schema}


def listed(items: Schema, **more: Schema) -> Schema:
    """Return the schema of the list envelope."""
    return {
        "type": "object",
        "required": ["results", "next", "previous", *more],
        "properties": {
            "results": {"type": "array", "items": items},
            "next": {"type": ["string", "null"], "format": "uri"},
            "previous": {"type": "null"},
            **more,
        },
    }


class TenantSchema(AutoSchema):
    """Describes a `TenantAPIView` from its `operations`, `parameters` and `roles`."""

    view: Any

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any
    ) -> dict[str, Any] | None:
        operations: Mapping[str, Operation] = getattr(self.view, "operations", {})
        operation = operations.get(method)
        if operation is None:
            return None
        roles = self.view.roles.get(method, ())
        refusals: dict[int, set[str]] = {}
        for refusal in (*ALWAYS, *operation.refusals):
            refusals.setdefault(refusal.status, set()).add(refusal.code)
        if "If-None-Match" in operation.request_headers and AlreadyExists in operation.refusals:
            # Asked for with a precondition, the same conflict has a status of its own.
            refusals[412] = {AlreadyExists.code}
        answers = {
            str(status): self._answer(operation, schema, registry)
            for status, schema in operation.answers.items()
        } | {
            str(status): self._problem(codes, registry)
            for status, codes in sorted(refusals.items())
        }
        described: dict[str, Any] = {
            "operationId": f"{method.lower()}_{self.view.__class__.__name__.removesuffix('View')}",
            "summary": operation.summary,
            "description": f"Roles: {', '.join(sorted(roles))}." if roles else "For everybody.",
            "tags": [(path.split("/")[5:] or ["keys"])[0]],
            "parameters": [
                *self._path(path),
                *self._query(method, operation),
                *self._headers(operation),
            ],
            "security": [{"bearer": []}, {"session": []}] if roles else [],
            "responses": answers,
        }
        if operation.body is not None:
            described["requestBody"] = {
                "required": True,
                "content": {
                    "application/json": {"schema": self._resolve(operation.body, registry)}
                },
            }
        return described

    def _path(self, path: str) -> list[dict[str, Any]]:
        return [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", path)
        ]

    def _query(self, method: str, operation: Operation) -> list[dict[str, Any]]:
        found = []
        known = {**QUERY, **operation.query}
        for name, may_repeat in self.view.parameters.get(method, {}).items():
            schema = known.get(name, {"type": "string"})
            if may_repeat:
                schema = {"type": "array", "items": schema}
            is_required = name in operation.required_query
            found.append({"name": name, "in": "query", "required": is_required, "schema": schema})
        return found

    def _headers(self, operation: Operation) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "in": "header",
                "description": HEADERS[name][0],
                "schema": HEADERS[name][1],
            }
            for name in operation.request_headers
        ]

    def _answer(self, operation: Operation, schema: Schema | None, registry: Any) -> dict[str, Any]:
        names = ("X-Request-ID", "Cache-Control", "Vary", *operation.answer_headers)
        described: dict[str, Any] = {
            "description": operation.summary,
            "headers": {name: {"schema": {"type": "string"}} for name in names},
        }
        if schema is not None:
            described["content"] = {
                "application/json": {"schema": self._resolve(schema, registry)},
                **{media: {"schema": {"type": "string"}} for media in operation.pages},
            }
            if operation.links:
                described["links"] = {name: dict(link) for name, link in operation.links.items()}
        return described

    def _problem(self, codes: set[str], registry: Any) -> dict[str, Any]:
        problem = self._resolve(named("Problem", PROBLEM), registry)
        return {
            "description": ", ".join(sorted(codes)),
            "headers": {"X-Request-ID": {"schema": {"type": "string"}}},
            "content": {"application/problem+json": {"schema": problem}},
        }

    def _resolve(self, schema: Any, registry: Any) -> Any:
        """Move named schemas into the components, however deep they stand."""
        if isinstance(schema, Mapping):
            resolved = {
                key: self._resolve(value, registry)
                for key, value in schema.items()
                if key != "x-component"
            }
            if "x-component" not in schema:
                return resolved
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=schema["x-component"], type=ResolvedComponent.SCHEMA, schema=resolved,
                object=schema["x-component"],
            )  # fmt: skip
            registry.register_on_missing(component)
            return component.ref
        if isinstance(schema, list):
            return [self._resolve(one, registry) for one in schema]
        return schema

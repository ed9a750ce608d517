"""
Every refusal of the service, as one family. Nothing here knows HTTP beyond a status number.

    ServiceError
    ├── BadRequest                 400
    │   ├── InvalidJSON            invalid_json
    │   ├── InvalidValue           invalid_value
    │   ├── InvalidScope           invalid_scope
    │   ├── InvalidKey             invalid_key
    │   ├── InvalidRevision        invalid_revision
    │   ├── InvalidTTL             invalid_ttl
    │   ├── UndeclaredKey          undeclared_key
    │   ├── DuplicateAddress       duplicate_address
    │   └── ValidationError        validation_error
    ├── NotAuthenticated           401 not_authenticated
    │   └── InvalidToken           401 invalid_token
    ├── Forbidden                  403
    │   ├── PermissionDenied       permission_denied
    │   ├── CSRFFailed             csrf_failed
    │   ├── ConsentRequired        consent_required
    │   ├── PurposeNotAllowed      purpose_not_allowed
    │   ├── Objected               objected
    │   └── Restricted             restricted
    ├── NotFound                   404 not_found
    ├── MethodNotAllowed           405 method_not_allowed
    ├── NotAcceptable              406 not_acceptable
    ├── Conflict                   409
    │   ├── StaleRevision          stale_revision
    │   ├── AlreadyExists          already_exists (412 when asked with If-None-Match)
    │   └── InvalidTransition      invalid_transition
    ├── LengthRequired             411 length_required
    ├── TooLarge                   413 too_large
    ├── UnsupportedMediaType       415 unsupported_media_type
    ├── IdempotencyMismatch        422 idempotency_mismatch
    ├── FailedDependency           424 failed_dependency
    ├── Throttled                  429 throttled
    ├── InternalError              500 internal_error
    └── StoreUnavailable           503 store_unavailable

A subclass's docstring is its default message; facts beyond the message are attributes.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One named part of a request that is off: JSON pointer (RFC 6901), code and sentence."""

    pointer: str
    code: str
    detail: str


class ServiceError(Exception):
    """The request was refused."""

    status: int = 400
    code: ClassVar[str] = "error"
    title: ClassVar[str] = "Refused"

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[FieldError] = (),
        facts: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        about: Mapping[str, str | None] | None = None,
    ) -> None:
        self.detail = detail or inspect.cleandoc(type(self).__doc__ or "")
        self.errors = tuple(errors)
        #: Further members of the answer: `purpose`, `current`.
        self.facts = dict(facts or {})
        self.headers = dict(headers or {})
        #: subject, scope and key concerned: for the trail, not for the answer.
        self.about = dict(about or {})
        #: Whether the trail already holds the denied event of this refusal.
        self.is_recorded = False
        super().__init__(self.detail)


class BadRequest(ServiceError):
    """The request is malformed."""

    status = 400
    title = "Bad request"
    #: What the error is about, where the class alone tells; None leaves `errors` to the caller.
    pointer: ClassVar[str | None] = None

    def __init__(self, detail: str | None = None, *, pointer: str | None = None, **more: Any):
        super().__init__(detail, **more)
        pointer = pointer if pointer is not None else self.pointer
        if pointer is not None and not self.errors:
            self.errors = (FieldError(pointer=pointer, code=self.code, detail=self.detail),)


class InvalidJSON(BadRequest):
    """The body is not JSON as RFC 8259 and RFC 7493 define it."""

    code = "invalid_json"
    title = "Not JSON"


class InvalidValue(BadRequest):
    """The value does not fit its definition."""

    code = "invalid_value"
    title = "Value refused"
    pointer = "/value"


class InvalidScope(BadRequest):
    """The scope does not follow the grammar of scopes."""

    code = "invalid_scope"
    title = "Scope refused"
    pointer = "/scope"


class InvalidKey(BadRequest):
    """The key does not follow the rules for keys."""

    code = "invalid_key"
    title = "Key refused"
    pointer = "/key"


class InvalidRevision(BadRequest):
    """A revision is 32 lower-case hexadecimal digits."""

    code = "invalid_revision"
    title = "Revision refused"
    pointer = "/revision"


class InvalidTTL(BadRequest):
    """The time to live is not acceptable."""

    code = "invalid_ttl"
    title = "Time to live refused"
    pointer = "/ttl_seconds"


class UndeclaredKey(BadRequest):
    """No definition governs this key at this kind of scope, and undeclared keys are not stored there."""

    code = "undeclared_key"
    title = "Undeclared key"
    pointer = "/key"


class DuplicateAddress(BadRequest):
    """An address stands twice in one batch."""

    code = "duplicate_address"
    title = "Duplicate address"


class ValidationError(BadRequest):
    """A part of the request is not acceptable."""

    code = "validation_error"
    title = "Request refused"


class NotAuthenticated(ServiceError):
    """Say who you are: send a bearer token, or sign in."""

    status = 401
    code = "not_authenticated"
    title = "Not authenticated"


class InvalidToken(NotAuthenticated):
    """The token is unknown, expired or revoked."""

    code = "invalid_token"
    title = "Token refused"


class Forbidden(ServiceError):
    """The request is understood and refused."""

    status = 403
    title = "Forbidden"


class PermissionDenied(Forbidden):
    """Your role in this tenant does not allow this."""

    code = "permission_denied"


class CSRFFailed(Forbidden):
    """A session needs the CSRF token for this method, in the header X-CSRFToken."""

    code = "csrf_failed"
    title = "CSRF check failed"


class ConsentRequired(Forbidden):
    """The person has not consented to this purpose, or no longer does."""

    code = "consent_required"
    title = "Consent required"


class PurposeNotAllowed(Forbidden):
    """This agent was not given the purpose that governs this record."""

    code = "purpose_not_allowed"
    title = "Purpose not allowed"


class Objected(Forbidden):
    """The person objected to this purpose."""

    code = "objected"
    title = "Objected to"


class Restricted(Forbidden):
    """What is held here is kept and not used: the person restricted it, or a hold keeps it as it is."""

    code = "restricted"
    title = "Restricted"


class NotFound(ServiceError):
    """There is nothing here."""

    status = 404
    code = "not_found"
    title = "Not found"


class MethodNotAllowed(ServiceError):
    """This resource does not support the method; the header Allow names those it does."""

    status = 405
    code = "method_not_allowed"
    title = "Method not allowed"


class NotAcceptable(ServiceError):
    """This resource answers in application/json only."""

    status = 406
    code = "not_acceptable"
    title = "Not acceptable"


class Conflict(ServiceError):
    """The record is not in the state that the request assumed."""

    status = 409
    title = "Conflict"


class StaleRevision(Conflict):
    """The record changed, expired or vanished since you read it: read it again and decide anew."""

    code = "stale_revision"
    title = "Stale revision"


class AlreadyExists(Conflict):
    """A live record stands at this address: send its revision to replace it."""

    code = "already_exists"
    title = "Already exists"


class InvalidTransition(Conflict):
    """The state of this value does not lead to the one that you sent."""

    code = "invalid_transition"
    title = "Step refused"


class LengthRequired(ServiceError):
    """This server cannot read a chunked body: send a Content-Length."""

    status = 411
    code = "length_required"
    title = "Length required"


class TooLarge(ServiceError):
    """The request is larger than its limit."""

    status = 413
    code = "too_large"
    title = "Too large"


class UnsupportedMediaType(ServiceError):
    """Send the body as application/json in UTF-8."""

    status = 415
    code = "unsupported_media_type"
    title = "Unsupported media type"


class IdempotencyMismatch(ServiceError):
    """This Idempotency-Key was used for another request."""

    status = 422
    code = "idempotency_mismatch"
    title = "Idempotency key used before"


class FailedDependency(ServiceError):
    """This operation was fine; another one of the atomic batch was refused, so nothing was done."""

    status = 424
    code = "failed_dependency"
    title = "Failed dependency"


class Throttled(ServiceError):
    """Too many requests: try again after the time in Retry-After."""

    status = 429
    code = "throttled"
    title = "Too many requests"


class InternalError(ServiceError):
    """A fault of the service. Report the request id; nothing was written."""

    status = 500
    code = "internal_error"
    title = "Internal error"


class StoreUnavailable(ServiceError):
    """The store cannot answer just now: try again after the time in Retry-After."""

    status = 503
    code = "store_unavailable"
    title = "Store unavailable"

    def __init__(self, detail: str | None = None, **more: Any) -> None:
        more.setdefault("headers", {"Retry-After": "1"})
        super().__init__(detail, **more)


def all_errors(root: type[ServiceError] = ServiceError) -> Iterator[type[ServiceError]]:
    """Yield every concrete error class, parents first."""
    for subclass in root.__subclasses__():
        if subclass.code != ServiceError.code:
            yield subclass
        yield from all_errors(subclass)

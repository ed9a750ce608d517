"""
Idempotency keys: a repeated request gets the first answer again and changes nothing.

What is kept holds no value: status, revision and times. Digests of key and request are keyed, so
that neither can be guessed from the table.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.expressions import RawSQL
from django.utils.crypto import salted_hmac

from tenants.exceptions import IdempotencyMismatch, ValidationError
from tenants.models import IdempotencyRecord
from tenants.units import store

#: How long an answer can be had again.
LIFETIME = timedelta(hours=24)


def _digest(purpose: str, *parts: bytes) -> str:
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return salted_hmac(f"consentful.idempotency.{purpose}", framed, algorithm="sha256").hexdigest()


def digest_of_caller(user_id: str, on_behalf_of: str | None) -> str:
    """Return the digest under which answers to one credential are kept."""
    return _digest("caller", f"{user_id}:{on_behalf_of or ''}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """One key of one caller in one tenant, and the digest of the request it came with."""

    tenant_id: int
    caller: str
    key: str
    request: str

    @classmethod
    def of_request(
        cls, header: str, *, tenant_id: int, caller: str, request: tuple[bytes, ...]
    ) -> "IdempotencyKey":
        """
        Digest a header's key and all that makes two requests the same.

        Raises:
            ValidationError: not 1-255 visible ASCII characters.
        """
        if not (1 <= len(header) <= 255 and all("!" <= character <= "~" for character in header)):
            raise ValidationError(
                "An Idempotency-Key has 1 to 255 visible ASCII characters.",
                pointer="/headers/Idempotency-Key",
            )
        return cls(
            tenant_id=tenant_id,
            caller=_digest("caller", caller.encode()),
            key=_digest("key", caller.encode(), header.encode()),
            request=_digest("request", *request),
        )

    def find_answer(self) -> Any:
        """
        Return what the first request was answered, or None. Inside a unit of work.

        A concurrent twin waits here until the first one has committed.

        Raises:
            IdempotencyMismatch: the key came with another request before.
        """
        with store().cursor() as cursor:
            # A statement of its own: the next one sees what the twin committed.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))",
                [f"consentful:{self.tenant_id}:{self.caller}:{self.key}"],
            )
        records = IdempotencyRecord.objects.filter(
            tenant_id=self.tenant_id, caller=self.caller, key=self.key
        )
        records.filter(created_at__lte=RawSQL("consentful_now() - %s", [LIFETIME])).delete()
        record = records.first()
        if record is None:
            return None
        if record.request != self.request:
            raise IdempotencyMismatch
        return record.answer

    def keep_answer(self, answer: Any, *, subject: str | None = None) -> None:
        """Keep what this request was answered, in the unit of work that did it."""
        IdempotencyRecord.objects.create(
            tenant_id=self.tenant_id,
            caller=self.caller,
            key=self.key,
            request=self.request,
            subject_id=RawSQL("consentful_subject_id(%s, %s)", [self.tenant_id, subject]),
            answer=answer,
            created_at=RawSQL("consentful_now()", []),
        )

    def drop_answer(self) -> None:
        """Forget the answer: what it told was taken back. Inside a unit of work."""
        IdempotencyRecord.objects.filter(
            tenant_id=self.tenant_id, caller=self.caller, key=self.key, request=self.request
        ).delete()


def purge_answers(*, tenant_id: int) -> int:
    """Drop the answers of one tenant that can no longer be had. Inside a unit of work."""
    return IdempotencyRecord.objects.filter(
        tenant_id=tenant_id, created_at__lte=RawSQL("consentful_now() - %s", [LIFETIME])
    ).delete()[0]

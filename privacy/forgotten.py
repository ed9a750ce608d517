"""What was forgotten about a person by now, so that nothing older brings it back. Names nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from privacy.erasing import key_digest
from privacy.models import Erasure
from tenants.pseudonyms import digests_of, names_of_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """
    What was erased of one person since a moment.

    Attributes:
        at: when the whole person was forgotten last, however long ago.
        is_whole: whether that was since the moment.
    """

    tenant_id: int
    at: datetime | None
    is_whole: bool
    erasures: Sequence[Erasure] = ()

    def has_record(self, key: str, purpose: str | None) -> bool:
        """Whether an erasure since the moment was about the record of this key for this purpose."""
        digests = {key_digest(self.tenant_id, key, secret=secret) for secret in names_of_keys()}
        return any(
            (one.key_digests is None or digests & set(one.key_digests))
            and (one.purposes is None or purpose in one.purposes)
            for one in self.erasures
        )


def find_forgotten(*, tenant_id: int, subject: str, since: datetime) -> Forgotten:
    """Return what was erased of a person who has this name. Inside a unit of work."""
    found = list(
        Erasure.objects.filter(tenant_id=tenant_id, digest__in=digests_of(tenant_id, subject))
    )
    at = max((one.requested_at for one in found if one.is_whole), default=None)
    return Forgotten(
        tenant_id=tenant_id,
        at=at,
        is_whole=at is not None and at >= since,
        erasures=[one for one in found if not one.is_whole and one.requested_at >= since],
    )

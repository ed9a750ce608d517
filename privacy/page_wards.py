"""
Pages of somebody for whom a guardian acts: where they are, and who may open them.

The person stands in the address, not in the session: two windows never mix up two persons. It stands
there as a keyed digest, since an address tells nobody's name.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from django.conf import settings
from django.urls import reverse

from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.guardians import act_for, list_wards

_BETWEEN = "/for/"


class PlaceConverter:
    """Whose pages: a tenant for one's own, ``acme/for/`` and a digest for a ward's."""

    regex = f"[^/]+(?:{_BETWEEN}[0-9a-f]{{32}})?"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ward:
    """Somebody for whom the person who signed in may act."""

    name: str
    place: str

    @property
    def link(self) -> str:
        """Return the address of its first page."""
        return reverse("consentful_me:overview", args=[self.place])


def split_place(place: str) -> tuple[str, str]:
    """Return the tenant, and the digest of the ward or nothing."""
    tenant, _, digest = place.partition(_BETWEEN)
    return tenant, digest


def find_wards(caller: Caller, tenant: str) -> Sequence[Ward]:
    """
    Return for whom a person may act now.

    Args:
        tenant: as the address calls it.
    """
    return [
        Ward(name=name, place=f"{tenant}{_BETWEEN}{digest_of(caller.tenant_id, name)}")
        for name in list_wards(caller)
    ]


def act_at(caller: Caller, digest: str) -> Caller:
    """
    Return the caller as the guardian whom an address names.

    Raises:
        NotFound: it acts for nobody of this digest, or no longer.
    """
    for name in list_wards(caller):
        if hmac.compare_digest(digest_of(caller.tenant_id, name), digest):
            guardian = act_for(caller, name)
            if guardian.is_guardian:
                return guardian
    raise NotFound


def digest_of(tenant_id: int, name: str) -> str:
    """Return what stands for a ward in an address."""
    address = f"consentful.page.ward:{tenant_id}:{name}"
    return hmac.new(settings.SECRET_KEY.encode(), address.encode(), sha256).hexdigest()[:32]

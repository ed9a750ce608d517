"""Who is asking: resolved in one query from a token or a signed-in user. Decides no permission."""

from dataclasses import dataclass

from audit.actors import Actor
from tenants.conf import resolve_subject
from tenants.exceptions import PermissionDenied
from tenants.roles import STEWARDS, Role
from tenants.scopes import Scope
from tenants.statements import fetch_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """
    The performer of a request inside one tenant.

    Attributes:
        subject: external id of the person the caller stands for; None for an operator without a
            subject and for an unbound agent.
        on_behalf_of: external id that a bound agent token names, or of whom a guardian acts for;
            then equal to `subject`.
        mandate: how it is known that a guardian may act for that person (`guardians.act_for`).
    """

    user_id: str
    username: str
    tenant_id: int
    tenant: str
    roles: frozenset[Role]
    subject: str | None
    on_behalf_of: str | None
    request_id: str | None = None
    reason: str | None = None
    mandate: str | None = None

    @property
    def is_guardian(self) -> bool:
        """Whether a guardian acts here, for the person in `subject`."""
        return self.mandate is not None

    @property
    def is_agent(self) -> bool:
        """An agent's credential stays an agent's, whatever other roles were added."""
        return Role.AGENT in self.roles

    @property
    def is_steward(self) -> bool:
        """Whether the caller may act for other persons, with a reason."""
        return not self.is_agent and bool(self.roles & STEWARDS)

    @property
    def actor(self) -> Actor:
        """The caller as the trail names it."""
        return Actor(
            label=self.username,
            id=self.user_id,
            on_behalf_of=self.on_behalf_of,
            request_id=self.request_id,
            reason=self.reason,
        )

    @property
    def agent_id(self) -> str | None:
        """The user id that purposes must be granted to; None where no such grant is asked."""
        return self.user_id if self.is_agent else None

    def stands_for(self, subject: str | None) -> bool:
        """Whether `subject` is this caller's own person."""
        return subject is not None and subject == self.subject

    def discloses(self, subject: str | None) -> bool:
        """Whether reading about `subject` shows a steward another person's data."""
        return subject is not None and self.is_steward and not self.stands_for(subject)

    def resolve_subject(self, text: str) -> str:
        """
        Return the external id that `text` (``me`` or an id) names.

        Raises:
            PermissionDenied: ``me``, and the caller stands for no person.
            InvalidScope: the id breaks the rules for segments.
        """
        return Scope.parse("me" if text == "me" else f"user::{text}", me=self.subject).name


def check_reach(caller: Caller, subject: str | None) -> None:
    """
    Refuse a caller who may not touch the data of `subject` at all (None: shared data).

    Raises:
        PermissionDenied: another person's data, and neither a steward nor an unbound agent asks.
    """
    if subject is None or caller.stands_for(subject) or caller.is_steward:
        return
    if caller.is_agent and caller.on_behalf_of is None:
        return
    raise PermissionDenied(
        "Your role in this tenant does not reach another person's data.",
        about={"subject": subject},
    )


def find_caller(
    *, tenant: str, digest: str | None = None, user_id: str | None = None
) -> Caller | None:
    """
    Resolve a credential in one tenant, in one query.

    Returns None for an unknown, expired or revoked credential. A caller whose `tenant_id` is 0
    has no role in that tenant, or there is no such tenant: the two look the same.
    """
    if "\x00" in tenant:
        tenant = ""  # no slug holds NUL, which the database refuses as a parameter
    row = fetch_row("SELECT * FROM consentful_caller(%s, %s, %s)", (digest, user_id, tenant))
    if row is None:
        return None
    user, username, tenant_id, slug, roles, subject, on_behalf_of = row
    if subject is None and slug is not None:
        subject = resolve_subject(user, slug)
    return Caller(
        user_id=user,
        username=username,
        tenant_id=tenant_id or 0,
        tenant=slug or "",
        roles=frozenset(Role(role) for role in roles),
        subject=subject,
        on_behalf_of=on_behalf_of,
    )

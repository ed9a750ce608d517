"""The page of a person's decisions: each purpose with its exact text, two equal answers, the past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import gettext as _

from consent.confirmations import NOT_SENT, list_pending
from consent.models import ConsentEntry, Decision, Notice, Purpose
from consent.objections import list_stands
from consent.selectors import State, get_purpose, list_history, list_purposes, list_states
from consent.services import decide
from privacy.page_base import Page
from privacy.page_rights import find_stop
from privacy.page_words import DECISIONS, GROUNDS, OLDER, STATES, Words
from tenants.exceptions import StaleRevision, StoreUnavailable, ValidationError
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: How the ledger says that the person decided by itself.
OWN_WORDS = frozenset({"user_confirmed", "double_opt_in", "gpc"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """
    One purpose that rests on consent, as a person decides on it.

    Attributes:
        notice: the newest text, in the page's language where there is one.
        agreed_to: the text that the consent in force was given to, where it is an older one.
        pending: until when a message with a token may be answered, where one was sent.
    """

    purpose: Purpose
    state: State
    words: Words
    notice: Notice | None
    agreed_to: Notice | None
    history: Sequence["Past"]
    pending: datetime | None = None

    @property
    def is_given(self) -> bool:
        """Whether the consent in force is one to the text that is shown."""
        return self.state.status == "given" and self.agreed_to is None

    @property
    def is_no(self) -> bool:
        """Whether the newest answer was no; what is asked for since can still be taken back."""
        return self.state.status in ("refused", "withdrawn") and self.pending is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One decision of the past."""

    word: Words
    at: datetime
    version: int | None
    locale: str | None
    expires_at: datetime | None
    #: Who decided, where it was not the person.
    actor: str | None
    #: Whether a browser said it, with Global Privacy Control.
    is_signal: bool


class ConsentsPage(Page):
    """Every purpose, with the decisions that led to where it stands."""

    part = "consents"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        caller = self.caller
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            states = list_states(tenant_id=caller.tenant_id, subject=self.subject)
            known = {
                one.slug: one
                for one in Purpose.objects.filter(tenant_id=caller.tenant_id)
                .prefetch_related("notices")
                .order_by("pk")
            }
            waiting = list_pending(tenant_id=caller.tenant_id, subject=self.subject)
            choices = [self.choice(known[state.purpose], state, waiting) for state in states]
            stands = {
                one.purpose: one
                for one in list_stands(tenant_id=caller.tenant_id, subject=self.subject)
            }
            others = [
                {
                    "purpose": one,
                    "ground": GROUNDS[one.lawful_basis],
                    "stand": stands.get(one.slug),
                }
                for one in list_purposes(tenant_id=caller.tenant_id)
                if one.lawful_basis != Purpose.LawfulBasis.CONSENT
            ]
            stop = find_stop(tenant_id=caller.tenant_id, subject=self.subject)
        return self.show(request, "consents", {"choices": choices, "others": others, "stop": stop})

    def choice(self, purpose: Purpose, state: State, waiting: Mapping[str, datetime]) -> Choice:
        """Gather what a person needs to know for one decision. Inside a unit of work."""
        notices = list(purpose.notices.all())
        newest = max((one.version for one in notices), default=None)
        agreed = state.version if state.status in ("given", "outdated") else None
        return Choice(
            purpose=purpose,
            state=state,
            words=OLDER if state.status == "given" and agreed != newest else STATES[state.status],
            notice=_in_language(notices, newest),
            agreed_to=_in_language(notices, agreed) if agreed != newest else None,
            pending=waiting.get(purpose.slug),
            history=[
                _past(one)
                for one in list_history(
                    tenant_id=self.caller.tenant_id, subject=self.subject, purpose=purpose
                ).reverse()
            ],
        )


class DecisionPage(Page):
    """One decision. True for everybody once it is answered."""

    part = "consents"

    def post(self, request: HttpRequest, tenant: str, purpose: str) -> HttpResponse:
        decision = request.POST.get("decision", "")
        if decision not in (Decision.GIVEN, Decision.WITHDRAWN):
            raise ValidationError("A decision is given or withdrawn.", pointer="/decision")
        given: dict[str, Any] = {}
        if decision == Decision.GIVEN:
            version = request.POST.get("version", "")
            if not (version.isascii() and version.isdigit() and len(version) < 10):
                raise ValidationError("A version is a whole number from 1.", pointer="/version")
            # Agreeing counts for the text that was shown, and for the state that was seen. Saying
            # no counts whatever was seen.
            given = {
                "version": int(version),
                "locale": request.POST.get("locale") or None,
                "entry": request.POST.get("entry") or None,
            }
        caller = self.caller
        try:
            with unit_of_work(
                tenant_id=caller.tenant_id,
                actor=caller.actor,
                subjects=[Scope.of_subject(self.subject).name],
                exclusive=True,
            ):
                before = self.find_state(purpose)
                if given and given["entry"] is None and before and before.entry:
                    # Said before any decision was seen, and there is one.
                    raise StaleRevision
                if given and before and self.is_so(before, given):
                    # Pressed again where nothing keeps a press from being sent: no renewal by accident.
                    messages.info(
                        request, _("You agree already: nothing was added."), fail_silently=True
                    )
                    return self.go("consents", anchor=f"purpose-{purpose}")
                state, _replayed = decide(
                    caller=caller,
                    subject=self.subject,
                    purpose=purpose,
                    decision=Decision(decision),
                    **given,
                )
        except StaleRevision:
            messages.error(
                request,
                _(
                    "The text or your decision changed after this page was opened, so nothing was"
                    " recorded. This is how it stands now."
                ),
                fail_silently=True,
            )
            return self.go("consents", anchor=f"purpose-{purpose}")
        except StoreUnavailable as refusal:
            if refusal.detail != NOT_SENT:
                raise
            messages.error(
                request,
                _(
                    "The message with which you confirm could not be sent. Nothing was asked for: try again later."
                ),
                fail_silently=True,
            )
            return self.go("consents", anchor=f"purpose-{purpose}")
        if state.pending is not None:
            said = _(
                "Asked for, and not in force yet: confirm it with the message that is sent to you."
            )
        elif given:
            said = _("Recorded: you agree.")
        else:
            said = _("Recorded: you do not agree.")
        messages.success(request, said, fail_silently=True)
        return self.go("consents", anchor=f"purpose-{purpose}")

    def find_state(self, purpose: str) -> State | None:
        """Return where the person stands, if the purpose rests on consent. Inside the unit."""
        states = list_states(tenant_id=self.caller.tenant_id, subject=self.subject, slugs=[purpose])
        return states[0] if states else None

    def is_so(self, before: State, given: Mapping[str, Any]) -> bool:
        """Whether this very consent is in force, and the press came from a page that showed it."""
        return (
            before.status == "given"
            and before.version == given["version"]
            and before.entry == given["entry"]
            and get_purpose(tenant_id=self.caller.tenant_id, slug=before.purpose).retired_at is None
        )


def _in_language(notices: Sequence[Notice], version: int | None) -> Notice | None:
    """Return a version's text in the page's language, else in the one it was published in first."""
    language = translation.get_language() or ""
    texts = sorted((one for one in notices if one.version == version), key=lambda one: one.pk)
    for text in texts:
        if text.locale.lower() == language:
            return text
    for text in texts:
        if text.locale.lower().partition("-")[0] == language.partition("-")[0]:
            return text
    return texts[0] if texts else None


def _past(entry: ConsentEntry) -> Past:
    return Past(
        word=DECISIONS[entry.decision],
        at=entry.at,
        version=entry.version,
        locale=entry.locale,
        expires_at=entry.expires_at,
        actor=None if entry.method in OWN_WORDS else entry.actor,
        is_signal=entry.method == "gpc",
    )

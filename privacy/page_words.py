"""Plain words for a person: refusals, lawful bases, states of consent, who wrote something."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tenants.exceptions import ServiceError

type Words = str | Promise

#: Title and sentence by code.
REFUSALS: dict[str, tuple[Words, Words]] = {
    "not_authenticated": (
        _("You are signed out"),
        _("Your session has ended, so nothing was saved. Sign in and do it again."),
    ),
    "csrf_failed": (
        _("This form is out of date"),
        _(
            "You signed in or out after it was opened, so nothing was saved. Open the page again"
            " and repeat what you did."
        ),
    ),
    "permission_denied": (
        _("This is not open to you"),
        _("Your sign-in stands for no person here, or may not do this. Nothing was changed."),
    ),
    "consent_required": (
        _("You do not agree to this use"),
        _("It can be seen and forgotten, but not changed. Nothing was saved."),
    ),
    "objected": (
        _("You objected to this use"),
        _("It can be seen and forgotten, but not changed. Nothing was saved."),
    ),
    "restricted": (
        _("You have stopped this use"),
        _("It can be seen and forgotten, but not changed. Nothing was saved."),
    ),
    "not_found": (
        _("There is nothing here"),
        _("The address is wrong, or what stood here is gone."),
    ),
    "method_not_allowed": (
        _("This page cannot be used that way"),
        _("Open it from the menu instead."),
    ),
    "too_large": (
        _("This is too large"),
        _("An entry takes 64 KiB at most. Nothing was saved."),
    ),
    "stale_revision": (
        _("This changed in the meantime"),
        _("Nothing was saved. Look at it again and decide anew."),
    ),
    "store_unavailable": (
        _("Not available just now"),
        _("What is held about you is safe, but cannot be shown. Try again in a minute."),
    ),
    "internal_error": (
        _("Something went wrong on our side"),
        _("Nothing was changed. If it happens again, tell us this number:"),
    ),
}

#: Why something is held, by the ground of GDPR article 6(1).
GROUNDS: dict[str, Words] = {
    "consent": _("Used only while you agree."),
    "contract": _("Needed for what you have agreed with us."),
    "legal_obligation": _("The law obliges us to keep it."),
    "vital_interest": _("It protects somebody's life."),
    "public_interest": _("It serves a task in the public interest."),
    "legitimate_interest": _("It serves a justified interest of ours."),
}

#: Why an entry cannot be changed here, by reason.
CLOSED: dict[str, Words] = {
    "consent_required": _(
        "You do not agree to this use at present. You can forget it, or agree again to change it."
    ),
    "objected": _(
        "You objected to this use. You can forget it, or take your objection back to change it."
    ),
    "restricted": _("You have stopped its use. Allow it again to change it."),
    "hold": _("A legal duty keeps it as it is for now. It can be seen, not changed."),
    "archived": _("This was put away: nobody reads it any more. You can see it and forget it."),
    "guardian": _(
        "Acting for somebody, you can see this, stop its use and forget it. Staff correct it if you ask."
    ),
    "writers": _("Only staff write this. Ask them if it is wrong, or forget it."),
    "undeclared": _("Nothing of this kind is stored any more. You can see it and forget it."),
    "other": _("It cannot be changed at present. You can see it and forget it."),
}

#: Who wrote something, by its source.
SOURCES: dict[str, Words] = {
    "user_confirmed": _("You"),
    "operator": _("Staff"),
    "agent": _("A program acting for you"),
    "import": _("An import"),
    "system": _("The system"),
}

#: What a person decided, as a state now.
STATES: dict[str, Words] = {
    "none": _("You have not decided yet."),
    "given": _("You agree."),
    "refused": _("You do not agree."),
    "withdrawn": _("You have withdrawn your consent."),
    "expired": _("Your consent has ended by itself."),
    "outdated": _("The text has changed since you agreed, so your consent no longer counts."),
}

#: The same where consent is in force to a text that has a newer version.
OLDER: Words = _("You agree to an older text, which still counts. Below stands the newer one.")

#: One decision in the history.
DECISIONS: dict[str, Words] = {
    "given": _("Agreed"),
    "refused": _("Refused"),
    "withdrawn": _("Withdrawn"),
    "objected": _("Objected"),
    "objection_lifted": _("Objection taken back"),
}

#: What became of one store in an erasure.
OUTCOMES: dict[str, Words] = {
    "pending": _("Not done yet"),
    "done": _("Erased"),
    "nothing_found": _("Nothing was there"),
    "failed": _("Not done yet, will be tried again"),
    "held": _("Kept for now, under a legal duty"),
    "not_recallable": _("Out of reach"),
    "exempt": _("Kept"),
}

#: What happened, by the trail's action.
ACTIONS: dict[str, Words] = {
    "preference.created": _("Wrote an entry"),
    "preference.replaced": _("Changed an entry"),
    "preference.deleted": _("Deleted an entry"),
    "preference.expired": _("An entry came to its end"),
    "preference.read": _("Read an entry"),
    "preference.archived": _("Put an entry away"),
    "preference.restored": _("Took an entry back into use"),
    "preference.held": _("Put an entry under a legal hold"),
    "preference.released": _("Ended a legal hold"),
    "consent.given": _("Recorded consent"),
    "consent.refused": _("Recorded a refusal"),
    "consent.withdrawn": _("Recorded a withdrawal"),
    "consent.objected": _("Recorded an objection"),
    "consent.objection_lifted": _("Took an objection back"),
    "restriction.created": _("Stopped a use"),
    "restriction.lifted": _("Allowed a use again"),
    "withdrawal.created": _("Asked to erase what a withdrawn consent had allowed"),
    "withdrawal.purged": _("Erased what a withdrawn consent had allowed"),
    "confirmation.created": _("Asked for a confirmation"),
    "confirmation.deleted": _("A confirmation was used or dropped"),
    "confirmation.expired": _("A confirmation came to its end"),
    "guardianship.created": _("Let somebody act for you"),
    "guardianship.changed": _("Changed who acts for you"),
    "guardianship.deleted": _("Ended that somebody acts for you"),
    "guardianship.expired": _("Somebody no longer acts for you"),
    "data.disclosed": _("Looked at your data"),
    "data.exported": _("Took a copy of your data"),
    "context.injected": _("Used it for an answer of a language model"),
    "erasure.created": _("Asked to forget"),
    "erasure.changed": _("Went on forgetting"),
    "tombstone.created": _("Noted that you were forgotten"),
    "tombstone.returned": _("Noted that you came back"),
    "subject.created": _("Made your entry"),
    "subject.changed": _("Changed your entry"),
    "role.created": _("Gave your login a role"),
    "role.deleted": _("Took a role from your login"),
    "token.created": _("Made a credential"),
    "token.changed": _("Ended a credential"),
    "token.deleted": _("Removed a credential"),
    "token.expired": _("Removed an ended credential"),
    "role.changed": _("Changed a role of your login"),
    "subject.deleted": _("Removed your entry"),
}


def explain(refusal: ServiceError) -> tuple[Words, Words]:
    """Return a title and a sentence for a refusal; the API's own words are for engineers."""
    general = (_("This could not be done"), _("Nothing was changed."))
    return REFUSALS.get(refusal.code, general)

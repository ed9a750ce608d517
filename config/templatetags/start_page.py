"""What the admin's start page asks: where the operator works, and where the ways lead."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest

from tenants.admin_place import place_of

register = template.Library()


@dataclass(frozen=True, slots=True)
class Card:
    """One thing that operators come for."""

    title: str
    text: str
    url: str
    model: str
    query: str = ""


CARDS = (
    Card("Find a person", "Its preferences, decisions and trail, from one page.",
         "consentful_tenants_subject_changelist", "consentful_tenants.subject"),
    Card("Record a decision", "What a person told you about consent, and how you know.",
         "consentful_consent_consententry_decide", "consentful_consent.consententry"),
    Card("Preferences", "What is remembered, by exact address.",
         "consentful_preferences_preference_changelist", "consentful_preferences.preference"),
    Card("Consents", "Where everybody stands now, per purpose.",
         "consentful_consent_consentstate_changelist", "consentful_consent.consentstate"),
    Card("Dashboard", "How consent fares, what ends soon, what waits or fails.",
         "consentful_privacy_erasure_dashboard", "consentful_privacy.erasure"),
    Card("Erasures", "Who was forgotten, by pseudonym, and what is unfinished.",
         "consentful_privacy_erasure_changelist", "consentful_privacy.erasure"),
    Card("Held records", "What a legal hold keeps as it is, and why.",
         "consentful_preferences_preference_changelist", "consentful_preferences.preference",
         "?state=held"),
    Card("Catalogue", "Which keys there are, and what they serve.",
         "consentful_preferences_definition_changelist", "consentful_preferences.definition"),
    Card("Purposes", "Why data is processed, and what people were told.",
         "consentful_consent_purpose_changelist", "consentful_consent.purpose"),
    Card("Tokens", "Credentials of programs: issue one, revoke one.",
         "consentful_tenants_token_changelist", "consentful_tenants.token"),
    Card("Trail", "Who did what, and what was refused.",
         "consentful_audit_event_changelist", "consentful_audit.event"),
)  # fmt: skip


@register.simple_tag(takes_context=True)
def find_place(context: Any) -> dict[str, Any]:
    """Return the chosen tenant, the caller's roles there, and the cards that are open to it."""
    request: HttpRequest = context["request"]
    place = place_of(request)
    if place is None:
        return {"tenant": None}
    pages = admin.site._registry
    cards = [
        card for card in CARDS if pages[apps.get_model(card.model)].has_view_permission(request)
    ]
    return {"tenant": place[0], "roles": sorted(place[1].roles), "cards": cards}

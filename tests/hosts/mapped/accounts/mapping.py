"""Whom Consentful calls what: organisations become tenants, users become persons."""

from uuid import UUID

from django.http import HttpRequest

from accounts.models import Organisation


def tenant_of_organisation(request: HttpRequest, name: str) -> str:
    """Return the tenant of the organisation whose key stands in the path."""
    try:
        organisation = Organisation.objects.filter(pk=UUID(name)).first()
    except ValueError:
        organisation = None
    return organisation.short_name if organisation else ""


def person_of_user(user_id: str, tenant: str) -> str:
    """Return what a user is called where nobody should read an e-mail address."""
    return f"person-{UUID(user_id).hex[:12]}"

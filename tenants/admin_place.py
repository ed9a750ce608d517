"""Where the operator works: the chosen tenant, and who the operator is in it."""

from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from audit.actors import Actor
from tenants.callers import Caller, find_caller
from tenants.middleware import request_id_of
from tenants.models import Tenant, TenantGroupPermission, TenantUserPermission
from tenants.roles import STEWARDS, Role

#: Where the session keeps the id of the chosen tenant.
CHOSEN = "consentful_tenant"
OWNERS = frozenset({Role.OWNER})


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in user as the trail names it."""
    user: Any = request.user
    return Actor(label=user.get_username(), id=str(user.pk), request_id=request_id_of(request))


def tenants_of(user: Any) -> QuerySet[Tenant]:
    """Return the tenants that are offered to the user; `caller_in` has the last word."""
    if user.is_superuser:
        return Tenant.objects.all()
    codenames = [role.codename for role in STEWARDS]
    own = TenantUserPermission.objects.filter(user=user, permission__codename__in=codenames)
    shared = TenantGroupPermission.objects.filter(
        group__in=user.groups.all(), permission__codename__in=codenames
    )
    return Tenant.objects.filter(
        Q(pk__in=own.values("content_object")) | Q(pk__in=shared.values("content_object"))
    )


def caller_in(request: HttpRequest, tenant: Tenant) -> Caller | None:
    """Return the signed-in user as a caller in the tenant: an owner, an operator or a superuser."""
    user: Any = request.user
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))
    if caller is None:
        return None
    if user.is_superuser:
        # Has every permission of Django's, so also those of an owner; never the gate's.
        caller = replace(
            caller, tenant_id=tenant.pk, tenant=tenant.slug, roles=caller.roles | OWNERS
        )
    elif not caller.is_steward:
        return None
    return replace(caller, request_id=request_id_of(request))


def place_of(request: HttpRequest) -> tuple[Tenant, Caller] | None:
    """Return the tenant that was chosen in the session, else the only one, and who asks there."""
    known: Any = request
    if not hasattr(known, "consentful_place"):
        offered = tenants_of(request.user)
        chosen = request.session.get(CHOSEN)
        found = list(offered.filter(pk=chosen)) if chosen else []
        if not found:
            found = list(offered[:2])
        caller = caller_in(request, found[0]) if len(found) == 1 else None
        known.consentful_place = (found[0], caller) if caller else None
    place: tuple[Tenant, Caller] | None = known.consentful_place
    return place


def tenant_of(request: HttpRequest) -> Tenant | None:
    """Return the tenant that the page is about, if one was chosen."""
    place = place_of(request)
    return place[0] if place else None


def caller_of(request: HttpRequest) -> Caller | None:
    """Return who asks in the chosen tenant."""
    place = place_of(request)
    return place[1] if place else None

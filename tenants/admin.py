"""
The admin: one tenant at a time, each page inside that tenant's unit of work.

The trail has no HTTP of its own: its two pages stand here too.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as InvalidForm
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from audit.actors import Actor
from audit.models import Event, Seal
from tenants.callers import find_caller
from tenants.exceptions import NotFound, ServiceError
from tenants.middleware import request_id_of
from tenants.models import Subject, Tenant, TenantGroupPermission, TenantUserPermission, Token
from tenants.roles import STEWARDS, Role
from tenants.scopes import Scope
from tenants.services import grant_role
from tenants.tokens import revoke_token
from tenants.units import current_unit, unit_of_work

#: Where the session keeps the id of the chosen tenant.
CHOSEN = "consentful_tenant"


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in user as the trail names it."""
    user: Any = request.user
    return Actor(label=user.get_username(), id=str(user.pk), request_id=request_id_of(request))


def may_enter(user: Any, tenant: Tenant) -> bool:
    """Whether the user may work in the tenant: a superuser, or an owner or operator of it."""
    if user.is_superuser:
        return True
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))
    return caller is not None and caller.is_steward


def tenants_of(user: Any) -> QuerySet[Tenant]:
    """Return the tenants that are offered to the user; `may_enter` has the last word."""
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


def tenant_of(request: HttpRequest) -> Tenant | None:
    """Return the tenant that was chosen in the session, else the only one there is."""
    offered = tenants_of(request.user)
    chosen = request.session.get(CHOSEN)
    found = list(offered.filter(pk=chosen)) if chosen else []
    if not found:
        found = list(offered[:2])
    return found[0] if len(found) == 1 and may_enter(request.user, found[0]) else None


class TenantModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """
    Pages of rows of the chosen tenant. Only what a subclass allows can be done to them.

    `hidden` columns are neither shown nor can a query string ask for them.
    """

    can_add = False
    can_change = False
    can_delete = False
    #: Whether the page also works while no tenant is chosen.
    is_installation_wide = False
    #: The column that says whose row it is.
    tenant_column = "tenant_id"
    form_fields: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[tuple[str, ...]] = ("salt",)

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)

    def unit(self, request: HttpRequest, tenant: Tenant | None) -> AbstractContextManager[Any]:
        """Return the unit of work of one page; tenant 0 stands for the installation."""
        return unit_of_work(tenant_id=tenant.pk if tenant else 0, actor=actor_of(request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        if request.method == "POST" and not self.get_actions(request):
            raise PermissionDenied
        view = super().changelist_view
        return self._inside(request, lambda more: view(request, more), extra_context)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        view = super().changeform_view
        return self._inside(
            request, lambda more: view(request, object_id, form_url, more), extra_context
        )

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        view = super().delete_view
        return self._inside(request, lambda more: view(request, object_id, more), extra_context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        view = super().history_view
        return self._inside(request, lambda more: view(request, object_id, more), extra_context)

    def _inside(
        self, request: HttpRequest, view: Callable[[dict[str, Any]], Any], extra_context: Any
    ) -> Any:
        """Answer inside the unit, rendering included: templates read rows too."""
        tenant = tenant_of(request)
        if tenant is None and not self.is_installation_wide:
            return self.ask_for_tenant(request)
        try:
            with self.unit(request, tenant):
                response = view({**self.header_of(tenant), **(extra_context or {})})
                if isinstance(response, SimpleTemplateResponse):
                    response.render()
                return response
        except (ServiceError, InvalidForm) as refusal:
            if request.method != "POST":
                raise
            lines = refusal.messages if isinstance(refusal, InvalidForm) else [refusal.detail]
            for line in lines:
                self.message_user(request, line, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def header_of(self, tenant: Tenant | None) -> dict[str, Any]:
        """Name the tenant at the top of the page."""
        title = self.admin_site.site_header
        return {"site_header": f"{title}: {tenant}" if tenant else title}

    def ask_for_tenant(self, request: HttpRequest) -> HttpResponse:
        """Send the user to the list of tenants."""
        self.message_user(request, "Choose a tenant first.", messages.WARNING)
        return HttpResponseRedirect(
            reverse(
                f"admin:{Tenant._meta.app_label}_tenant_changelist",
                current_app=self.admin_site.name,
            )
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        unit = current_unit()
        if unit is None:
            raise RuntimeError("The admin reads inside a unit of work alone.")
        return super().get_queryset(request).filter(**{self.tenant_column: unit.tenant_id})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None or self.can_change:
            return self.form_fields
        names = [field.name for field in self.opts.concrete_fields]
        return [name for name in names if name not in self.hidden]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None or self.can_change else self.get_fields(request, obj)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # Django allows every column of the model itself: a way to guess what is not shown.
        return lookup.split("__")[0] not in self.hidden and super().lookup_allowed(
            lookup, value, request
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.can_add and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_change and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_delete and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        unit = current_unit()
        if unit is not None and not change and self.tenant_column:
            setattr(obj, self.tenant_column, unit.tenant_id)
            # The form, which does not know the tenant, could not.
            obj.validate_unique()
            obj.validate_constraints()
        super().save_model(request, obj, form, change)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            row.delete()

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._log(request, obj, ADDITION)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._log(request, obj, CHANGE)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Model]) -> list[LogEntry]:
        return [self._log(request, obj, DELETION) for obj in queryset]

    def _log(self, request: HttpRequest, obj: Model, flag: int) -> LogEntry:
        """Name the row by its number: Django's own log outlives an erasure."""
        user: Any = request.user
        return LogEntry.objects.create(
            user_id=user.pk,
            content_type=ContentType.objects.get_for_model(obj),
            object_id=obj.pk,
            object_repr=f"{self.opts.verbose_name} {obj.pk}",
            action_flag=flag,
        )


@admin.register(Tenant)
class TenantAdmin(TenantModelAdmin):
    can_add = can_change = True
    is_installation_wide = True
    tenant_column = ""
    form_fields = ("slug", "name", "external_id")
    list_display = ("slug", "name", "created_at", "enter")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return tenants_of(request.user).order_by(*self.ordering)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.enter_view)
        name = f"{self.opts.app_label}_tenant_enter"
        return [path("<int:tenant_id>/enter/", view, name=name), *super().get_urls()]

    @admin.display(description="work in it")
    def enter(self, obj: Tenant) -> str:
        """A button of the list's own form: no link of another site can choose for the user."""
        address = reverse(
            f"admin:{self.opts.app_label}_tenant_enter",
            args=[obj.pk],
            current_app=self.admin_site.name,
        )
        return format_html(
            '<button type="submit" formmethod="post" formaction="{}">Enter</button>', address
        )

    def enter_view(self, request: HttpRequest, tenant_id: int) -> HttpResponse:
        """Choose the tenant of this session."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        tenant = get_object_or_404(Tenant, pk=tenant_id)
        if not may_enter(request.user, tenant):
            raise PermissionDenied
        request.session[CHOSEN] = tenant.pk
        self.message_user(request, f"You work in {tenant} now.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))


@admin.register(Subject)
class SubjectAdmin(TenantModelAdmin):
    can_add = True
    form_fields = ("external_id", "user")
    raw_id_fields = ("user",)
    list_display = ("external_id", "user", "created_at")
    list_select_related = ("user",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.external_id = Scope.of_subject(obj.external_id).name
        super().save_model(request, obj, form, change)


class RoleAdmin(TenantModelAdmin):
    """Roles are given and taken, never changed."""

    can_add = can_delete = True
    tenant_column = "content_object_id"

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **more: Any) -> Any:
        if db_field.name == "permission":
            more["queryset"] = Permission.objects.filter(
                content_type__app_label=Tenant._meta.app_label,
                codename__in=[role.codename for role in Role],
            ).select_related("content_type")
        return super().formfield_for_foreignkey(db_field, request, **more)

    @admin.display(description="role")
    def role(self, obj: Any) -> str:
        return str(obj.permission.codename.removeprefix("act_as_"))


@admin.register(TenantUserPermission)
class TenantUserPermissionAdmin(RoleAdmin):
    form_fields = ("user", "permission")
    raw_id_fields = ("user",)
    list_display = ("user", "role")
    list_select_related = ("user", "permission")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        unit = current_unit()
        if unit is None:
            raise RuntimeError("The admin writes inside a unit of work alone.")
        # Not a plain row: a member is a person too.
        grant_role(
            tenant=Tenant.objects.get(pk=unit.tenant_id),
            user=obj.user,
            role=Role(self.role(obj)),
            actor=unit.actor,
        )
        stored = TenantUserPermission.objects.get(
            user=obj.user, permission=obj.permission, content_object=unit.tenant_id
        )
        obj.pk, obj.content_object_id = stored.pk, unit.tenant_id


@admin.register(TenantGroupPermission)
class TenantGroupPermissionAdmin(RoleAdmin):
    form_fields = ("group", "permission")
    raw_id_fields = ("group",)
    list_display = ("group", "role")
    list_select_related = ("group", "permission")


@admin.register(Token)
class TokenAdmin(TenantModelAdmin):
    """Tokens of the chosen tenant; a superuser also sees those that are bound to none."""

    is_installation_wide = True
    hidden = ("salt", "digest")
    list_display = ("id", "user", "tenant", "on_behalf_of", "expires_at", "revoked_at")
    list_select_related = ("user", "tenant")
    actions = ("revoke",)

    def unit(self, request: HttpRequest, tenant: Tenant | None) -> AbstractContextManager[Any]:
        # Each token is revoked in the unit of its own tenant.
        return nullcontext()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        tenant = tenant_of(request)
        reach = Q(tenant=tenant) if tenant else Q(pk__in=[])
        if request.user.is_superuser:
            reach |= Q(tenant=None)
        return Token.objects.filter(reach).order_by(*self.ordering)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether the user may revoke: as Django's own permission to change tokens says."""
        return admin.ModelAdmin.has_change_permission(self, request)

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """End the life of the selected tokens; those that were revoked before are left out."""
        revoked = 0
        for token in queryset.filter(revoked_at=None):
            with suppress(NotFound):
                self.log_change(
                    request, revoke_token(token_id=token.pk, actor=actor_of(request)), ""
                )
                revoked += 1
        self.message_user(request, f"Revoked: {revoked}.", messages.SUCCESS)


@admin.register(Event)
class EventAdmin(TenantModelAdmin):
    hidden = ("target_salt", "actor_salt")
    list_display = ("id", "at", "action", "outcome", "record_id", "scope", "key", "actor")


@admin.register(Seal)
class SealAdmin(TenantModelAdmin):
    list_display = ("sequence", "event", "hash", "at")
    list_select_related = ("event",)

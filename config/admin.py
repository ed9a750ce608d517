"""The admin of the standalone service: its start page, and Django's own pages of logins."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse

from consent.models import PurposeGroupPermission, PurposeUserPermission
from tenants.admin_base import PseudonymousLog
from tenants.admin_place import actor_of
from tenants.models import TenantGroupPermission, TenantUserPermission, Token
from tenants.units import unit_of_work

admin.site.site_header = "Consentful"
admin.site.site_title = "Consentful"
admin.site.index_title = "Start"
admin.site.site_url = None  # there is no other site to view
admin.site.index_template = "config/admin_index.html"


#: What goes with a login or a group.
GOING_ALONG = (
    TenantUserPermission,
    TenantGroupPermission,
    PurposeUserPermission,
    PurposeGroupPermission,
    Token,
)


class AnnouncedPages(PseudonymousLog):
    """
    Pages of what no tenant owns, whose deletion takes roles, grants and tokens along.

    Those leave events in the trails of their tenants, which then name who did it.

    For superusers alone: whoever may change a login or the members of a group can become anybody,
    the owner of a tenant and a superuser among them.
    """

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    has_add_permission = has_module_permission
    has_change_permission = has_delete_permission = has_view_permission

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        rows, count, lacking, protected = super().get_deleted_objects(objs, request)  # type: ignore[misc]
        if request.user.is_superuser:
            # The pages of a tenant's rights are closed to whoever works in another tenant.
            lacking = lacking - {model._meta.verbose_name for model in GOING_ALONG}
        return rows, count, lacking, protected

    def delete_view(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        with unit_of_work(tenant_id=0, actor=actor_of(request)):
            response: HttpResponse = super().delete_view(request, *args, **more)  # type: ignore[misc]
            return response

    def changelist_view(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        with unit_of_work(tenant_id=0, actor=actor_of(request)):
            response: HttpResponse = super().changelist_view(request, *args, **more)  # type: ignore[misc]
            return response


admin.site.unregister(Group)
admin.site.unregister(get_user_model())


@admin.register(Group)
class AnnouncedGroupAdmin(AnnouncedPages, GroupAdmin):
    pass


@admin.register(get_user_model())
class AnnouncedUserAdmin(AnnouncedPages, UserAdmin):  # type: ignore[type-arg]
    pass

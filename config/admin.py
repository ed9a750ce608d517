"""The admin of the standalone service: its start page, and Django's own pages of logins."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse

from tenants.admin_base import PseudonymousLog, actor_of
from tenants.units import unit_of_work

admin.site.site_header = "Consentful"
admin.site.site_title = "Consentful"
admin.site.index_title = "Start"
admin.site.index_template = "config/admin_index.html"


class AnnouncedPages(PseudonymousLog):
    """
    Pages of what no tenant owns, whose deletion takes roles, grants and tokens along.

    Those leave events in the trails of their tenants, which then name who did it.
    """

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

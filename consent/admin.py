"""The admin's pages of purposes, notices, grants, and the ledger, which nobody edits."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Permission
from django.http import HttpRequest

from consent.models import (
    SERVE,
    ConsentEntry,
    ConsentState,
    Notice,
    Purpose,
    PurposeGroupPermission,
    PurposeUserPermission,
)
from tenants.admin import TenantModelAdmin
from tenants.units import current_unit


@admin.register(Purpose)
class PurposeAdmin(TenantModelAdmin):
    list_display = ("slug", "title", "lawful_basis", "required_version", "retired_at")


@admin.register(Notice)
class NoticeAdmin(TenantModelAdmin):
    list_display = ("purpose", "version", "locale", "created_at")
    list_select_related = ("purpose",)


class GrantAdmin(TenantModelAdmin):
    """Grants are given and taken, never changed."""

    can_add = can_delete = True

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **more: Any) -> Any:
        unit = current_unit()
        if db_field.name == "content_object" and unit is not None:
            more["queryset"] = Purpose.objects.filter(tenant=unit.tenant_id)
        return super().formfield_for_foreignkey(db_field, request, **more)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.permission = Permission.objects.get(
            codename=SERVE, content_type__app_label=Purpose._meta.app_label
        )
        super().save_model(request, obj, form, change)


@admin.register(PurposeUserPermission)
class PurposeUserPermissionAdmin(GrantAdmin):
    form_fields = ("user", "content_object")
    raw_id_fields = ("user", "content_object")
    list_display = ("user", "content_object")
    list_select_related = ("user", "content_object")


@admin.register(PurposeGroupPermission)
class PurposeGroupPermissionAdmin(GrantAdmin):
    form_fields = ("group", "content_object")
    raw_id_fields = ("group", "content_object")
    list_display = ("group", "content_object")
    list_select_related = ("group", "content_object")


@admin.register(ConsentEntry)
class ConsentEntryAdmin(TenantModelAdmin):
    list_display = ("id", "subject", "purpose", "decision", "version", "method", "at")
    list_select_related = ("subject", "purpose")


@admin.register(ConsentState)
class ConsentStateAdmin(TenantModelAdmin):
    list_display = ("id", "subject", "purpose", "decision", "version", "expires_at", "since")
    list_select_related = ("subject", "purpose")

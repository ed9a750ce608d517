"""The admin's pages of roles. Only an owner gives and takes them, and nobody stands above one."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.admin_base import Link, TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField
from tenants.admin_place import OWNERS, caller_of
from tenants.models import Tenant, TenantGroupPermission, TenantUserPermission
from tenants.roles import Role
from tenants.services import check_owner, grant_role

ROLES = [
    (Role.MEMBER.value, "member: acts for itself"),
    (Role.AGENT.value, "agent: software that serves purposes"),
    (Role.OPERATOR.value, "operator: manages anyone's preferences, with reasons"),
    (Role.AUDITOR.value, "auditor: reads trail and ledger, no values"),
    (Role.OWNER.value, "owner: all of it, and roles, tokens, the catalogue"),
]


class UserRoleForm(ServiceForm):
    class Meta:
        model = TenantUserPermission
        fields: ClassVar[list[str]] = []

    user = UserNameField(label="Login", help_text="The exact user name.")
    role = forms.ChoiceField(choices=ROLES, help_text="Roles add up. An agent stays an agent.")
    subject = forms.CharField(
        label="Person", required=False, strip=False,
        help_text="Id of the person that a member is; its user name where this is left empty.",
    )  # fmt: skip
    pointers: ClassVar[dict[str, str]] = {"scope": "subject"}

    def perform(self, data: dict[str, Any]) -> Any:
        check_owner(self.caller)
        role = Role(data["role"])
        grant_role(
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            user=data["user"],
            role=role,
            subject=data["subject"] or None,
            actor=self.caller.actor,
        )
        return TenantUserPermission.objects.get(
            user=data["user"],
            permission__codename=role.codename,
            content_object=self.caller.tenant_id,
        )


class GroupRoleForm(ServiceForm):
    class Meta:
        model = TenantGroupPermission
        fields: ClassVar[list[str]] = []

    group = forms.CharField(max_length=150, help_text="The exact name of a group of logins.")
    role = forms.ChoiceField(choices=ROLES, help_text="Everyone in the group acts in it.")

    def clean_group(self) -> Group:
        group = Group.objects.filter(name=self.cleaned_data["group"]).first()
        if group is None:
            raise forms.ValidationError("There is no group of this name.")
        return group

    def perform(self, data: dict[str, Any]) -> Any:
        check_owner(self.caller)
        return TenantGroupPermission.objects.get_or_create(
            group=data["group"],
            permission=Permission.objects.get(
                codename=Role(data["role"]).codename, content_type__app_label=Tenant._meta.app_label
            ),
            content_object_id=self.caller.tenant_id,
        )[0]


class RoleAdmin(TenantModelAdmin):
    """Roles are given and taken, never changed."""

    can_add = can_delete = True
    viewers = OWNERS
    tenant_column = "content_object_id"
    purpose_text = "Who may act in this tenant, and as what. Take a role by deleting its row."

    @admin.display(description="role")
    def role(self, obj: Any) -> str:
        return str(obj.permission.codename.removeprefix("act_as_"))

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        return [self.trail_of(obj)]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.check_may_take(request)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.check_may_take(request)
        for row in queryset:
            row.delete()

    def check_may_take(self, request: HttpRequest) -> None:
        """Refuse whoever is no owner, whatever Django's own permissions say."""
        caller = caller_of(request)
        if caller is not None:
            check_owner(caller)


@admin.register(TenantUserPermission)
class TenantUserPermissionAdmin(RoleAdmin):
    form = UserRoleForm
    list_display = ("user", "role")
    list_select_related = ("user", "permission")
    empty_text = "Nobody has a role here yet."


@admin.register(TenantGroupPermission)
class TenantGroupPermissionAdmin(RoleAdmin):
    form = GroupRoleForm
    list_display = ("group", "role")
    list_select_related = ("group", "permission")
    empty_text = "No group has a role here."

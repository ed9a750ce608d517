"""Give a user a role in a tenant, and an agent the purposes it may serve."""

from typing import Any

from django.contrib.auth import get_user_model

from audit.actors import SYSTEM
from consent.services import grant_purposes
from tenants.commands import ServiceCommand, get_user
from tenants.exceptions import NotFound, ValidationError
from tenants.roles import Role
from tenants.services import get_tenant, grant_role
from tenants.units import unit_of_work


class Command(ServiceCommand):
    help = "Give a user a role in a tenant. Roles and purposes add up."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")
        parser.add_argument("username")
        parser.add_argument("role", choices=[role.value for role in Role])
        parser.add_argument(
            "--subject", help="the person this user is; a member's default is the user name"
        )
        parser.add_argument(
            "--purpose",
            action="append",
            default=[],
            help="a purpose the agent may serve; repeatable",
        )
        parser.add_argument(
            "--create-user", action="store_true", help="create the user where missing"
        )

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        role = Role(options["role"])
        if options["purpose"] and role is not Role.AGENT:
            raise ValidationError("Purposes are given to agents.")
        try:
            user = get_user(options["username"])
        except NotFound:
            if not options["create_user"]:
                raise
            user = None
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            if user is None:
                user = get_user_model()._default_manager.create_user(options["username"])
                user.set_unusable_password()
                user.save(update_fields=["password"])
            grant_role(tenant=tenant, user=user, role=role, subject=options["subject"])
            grant_purposes(
                user_id=user.pk, tenant_id=tenant.pk, slugs=options["purpose"], actor=SYSTEM
            )
        self.tell(f"{options['username']} is {role.value} of {tenant.slug}.")

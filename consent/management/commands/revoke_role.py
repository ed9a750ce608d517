"""Take a role from a user, or purposes from an agent."""

from typing import Any

from audit.actors import SYSTEM
from consent.services import revoke_purposes
from tenants.commands import ServiceCommand, get_user
from tenants.roles import Role
from tenants.services import get_tenant, revoke_role
from tenants.units import unit_of_work


class Command(ServiceCommand):
    help = "Take a role from a user; with --purpose, take only those purposes from an agent."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")
        parser.add_argument("username")
        parser.add_argument("role", choices=[role.value for role in Role])
        parser.add_argument("--purpose", action="append", default=[])

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        user = get_user(options["username"])
        role = Role(options["role"])
        if options["purpose"]:
            count = revoke_purposes(
                user_id=user.pk, tenant_id=tenant.pk, slugs=options["purpose"], actor=SYSTEM
            )
            self.tell(f"{user.get_username()} serves {count} purposes less in {tenant.slug}.")
            return
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            revoke_role(tenant=tenant, user=user, role=role)
            if role is Role.AGENT:
                revoke_purposes(user_id=user.pk, tenant_id=tenant.pk, actor=SYSTEM)
        self.tell(f"{user.get_username()} is no {role.value} of {tenant.slug} any more.")

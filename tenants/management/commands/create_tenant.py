"""Create a tenant."""

from typing import Any

from tenants.commands import ServiceCommand
from tenants.services import create_tenant


class Command(ServiceCommand):
    help = "Create a tenant."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("slug", help="lower-case letters, digits, hyphens; stands in the path")
        parser.add_argument("--name", default="", help="for people to read")

    def run(self, **options: Any) -> None:
        tenant = create_tenant(slug=options["slug"], name=options["name"])
        self.tell(f"Created the tenant {tenant.slug}.")
        self.stdout.write(tenant.slug)

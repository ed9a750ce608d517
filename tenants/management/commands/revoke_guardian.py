"""Let a user act for a person no longer."""

from typing import Any

from audit.actors import SYSTEM
from tenants.commands import ServiceCommand
from tenants.guardians import end_guardianship
from tenants.services import get_tenant


class Command(ServiceCommand):
    help = "Let a user act for a person no longer."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")
        parser.add_argument("username")
        parser.add_argument("subject", help="the person that was acted for")

    def run(self, **options: Any) -> None:
        end_guardianship(
            tenant_id=get_tenant(slug=options["tenant"]).pk, username=options["username"],
            subject=options["subject"], actor=SYSTEM,
        )  # fmt: skip
        self.tell(f"{options['username']} acts for {options['subject']} no longer.")

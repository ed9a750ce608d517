"""Let a user act for a person who does not act alone."""

from typing import Any

from audit.actors import SYSTEM
from tenants.commands import ServiceCommand
from tenants.exceptions import ValidationError
from tenants.guardians import grant_guardianship
from tenants.services import get_tenant
from tenants.times import parse_time


class Command(ServiceCommand):
    help = "Let a user decide on consent, see the data and ask for erasure of one person."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")
        parser.add_argument("username", help="a user with a role in the tenant, as a member")
        parser.add_argument("subject", help="the person that is acted for")
        parser.add_argument("--evidence", required=True, help="the paper that says so")
        parser.add_argument("--until", help="when it ends, as in 2030-01-31T12:00:00Z")

    def run(self, **options: Any) -> None:
        try:
            until = parse_time(options["until"]) if options["until"] else None
        except ValueError as fault:
            raise ValidationError(str(fault)) from fault
        grant_guardianship(
            tenant_id=get_tenant(slug=options["tenant"]).pk, username=options["username"],
            subject=options["subject"], evidence=options["evidence"], expires_at=until, actor=SYSTEM,
        )  # fmt: skip
        self.tell(f"{options['username']} acts for {options['subject']}.")

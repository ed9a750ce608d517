"""Issue a bearer token and print it once."""

from datetime import timedelta
from typing import Any

from tenants.commands import ServiceCommand, get_user
from tenants.services import get_tenant
from tenants.tokens import issue_token


class Command(ServiceCommand):
    help = "Issue a bearer token. It is printed once and stored as a digest."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--on-behalf-of", metavar="SUBJECT", help="the one person an agent reaches"
        )
        parser.add_argument("--tenant", metavar="SLUG", help="confine the token to one tenant")
        parser.add_argument("--days", type=int, default=90)

    def run(self, **options: Any) -> None:
        credential, token = issue_token(
            user=get_user(options["username"]),
            tenant=get_tenant(slug=options["tenant"]) if options["tenant"] else None,
            on_behalf_of=options["on_behalf_of"],
            lifetime=timedelta(days=min(options["days"], 10**6)),
        )
        self.tell(
            f"Token {token.pk} of {options['username']} lives until {token.expires_at:%Y-%m-%d}."
        )
        self.stdout.write(credential)

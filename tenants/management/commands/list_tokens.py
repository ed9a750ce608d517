"""List the tokens that work."""

from typing import Any

from tenants.commands import ServiceCommand
from tenants.tokens import list_tokens


class Command(ServiceCommand):
    help = "List the tokens that are neither expired nor revoked: id, user, tenant, person, end."

    def run(self, **options: Any) -> None:
        for token in list_tokens():
            self.stdout.write(
                f"{token.pk}\t{token.user.get_username()}\t{token.tenant.slug if token.tenant else '-'}"
                f"\t{token.on_behalf_of or '-'}\t{token.expires_at:%Y-%m-%dT%H:%M:%SZ}"
            )

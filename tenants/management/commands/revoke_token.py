"""Revoke a token."""

from typing import Any

from tenants.commands import ServiceCommand
from tenants.tokens import revoke_token


class Command(ServiceCommand):
    help = "Revoke a token by its id (see list_tokens): the next request with it gets 401."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("token", type=int)

    def run(self, **options: Any) -> None:
        token = revoke_token(token_id=options["token"])
        self.tell(f"Revoked token {token.pk}.")

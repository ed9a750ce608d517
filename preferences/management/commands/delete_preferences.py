"""Delete the preferences of one scope: what is too much for one page of the admin."""

from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from audit.actors import SYSTEM
from preferences.bulk import delete_scope
from tenants.commands import ServiceCommand
from tenants.exceptions import ValidationError
from tenants.scopes import Scope
from tenants.services import get_tenant

BATCH = 1000


class Command(ServiceCommand):
    help = "Delete the preferences of one scope, in batches; each leaves its event."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        parser.add_argument("scope", help="exact scope, e.g. repo::acme/checkout or user::alice")
        parser.add_argument("--key-prefix", default="", help="only keys that begin so")
        parser.add_argument("--reason", required=True, help="why; every event holds it")

    def run(self, **options: Any) -> None:
        reason = options["reason"]
        if not 1 <= len(reason.strip()) <= len(reason) <= 500:
            raise ValidationError("A reason has 1 to 500 characters.")
        tenant = get_tenant(slug=options["tenant"])
        scope = Scope.parse(options["scope"])
        total = 0
        # A bar for a person who waits; nothing where nobody looks.
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("Deleting", total=None)
            while True:
                count = delete_scope(
                    tenant_id=tenant.pk,
                    scope=scope,
                    key_prefix=options["key_prefix"],
                    actor=SYSTEM.because(reason),
                    most=BATCH,
                )
                total += count
                progress.update(bar, completed=total)
                if count < BATCH:
                    break
        self.tell(f"Deleted {total} preferences.")
        self.stdout.write(str(total))

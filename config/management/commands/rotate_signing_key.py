"""Sign with a new key from now on."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from audit.exceptions import ProofError
from config.signing import rotate_signing_key


class Command(BaseCommand):
    help = (
        "Make a new signing key below DATA_DIR. What the former one signed is still believed, but"
        " it can sign nothing more. Prints the new key's thumbprint."
    )
    requires_system_checks: Any = []

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.SIGNING_KEY:
            raise CommandError(
                "SIGNING_KEY names the key: put a new one there, and the former one's public half"
                " into SIGNING_KEY_FALLBACKS."
            )
        try:
            former, present = rotate_signing_key(settings.KEYS_DIR)
        except (ProofError, OSError) as fault:
            raise CommandError(f"The key was not changed: {fault}") from fault
        self.stderr.write(f"{former} signs no more; its public key stays beside the new one.")
        self.stdout.write(present)

"""Print the public keys that prove what this installation signed."""

import json
from typing import Any

from django.core.management.base import CommandError

from audit.exceptions import ProofError, SigningKeyMissing
from audit.signing import as_jwk_set, trusted_keys
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Print the public keys whose signatures are good, the present one first, as a JWK set: for"
        " verify_audit --keys, and for whoever verifies elsewhere."
    )

    def run(self, **options: Any) -> None:
        try:
            keys = trusted_keys()
            if not keys:
                raise SigningKeyMissing
        except ProofError as fault:
            raise CommandError(str(fault)) from fault
        self.stdout.write(json.dumps(as_jwk_set(keys.values()), indent=2))

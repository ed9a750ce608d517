"""Compare the receipt of an erasure with its signature and with the database."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from audit.exceptions import ProofError
from audit.signing import read_keys, trusted_keys
from privacy.verification import verify_receipt
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Check the signature of an erasure's receipt, and that what it says is still true of the"
        " database. Prints one line per finding."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("receipt", type=Path, help="a file with the signed receipt")
        parser.add_argument(
            "--keys", type=Path, help="public keys to believe (PEM or a JWK set), instead of ours"
        )

    def run(self, **options: Any) -> None:
        try:
            text = options["receipt"].read_text("ascii")
            keys = read_keys(options["keys"].read_text()) if options["keys"] else trusted_keys()
            findings = verify_receipt(text, keys)
        except (OSError, ValueError, ProofError) as fault:
            raise CommandError(f"The receipt cannot be believed: {fault}") from fault
        for finding in findings:
            self.stdout.write(finding)
        if findings:
            raise CommandError(f"{len(findings)} findings.")
        self.tell("The receipt is genuine, and the database is as it says.")

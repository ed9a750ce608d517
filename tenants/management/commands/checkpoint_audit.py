"""Sign where each chain stands, and keep that outside the database."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from audit.exceptions import ProofError
from audit.stores import FolderStore, LineStore, Store, configured_store
from tenants.commands import ServiceCommand
from tenants.proof import write_checkpoint
from tenants.trail import find_trails


class Command(ServiceCommand):
    help = (
        "Seal, compare each chain with every checkpoint kept before, and add the next one, signed."
        " Prints one line per new checkpoint: tenant, sequence and hash."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant", nargs="?", help="only this one; all of them by default")
        place = parser.add_mutually_exclusive_group()
        place.add_argument("--folder", type=Path, help="keep them here instead")
        place.add_argument(
            "--print", action="store_true", help="print the signed lines, and keep nothing"
        )
        parser.add_argument(
            "--after", type=Path, metavar="FILE", help="with --print: the lines printed before"
        )

    def run(self, **options: Any) -> None:
        if options["after"] and not options["print"]:
            raise CommandError("--after goes with --print.", returncode=2)
        kept = self._choose_store(**options)
        refused = []
        for tenant_id, name in find_trails(options["tenant"]).items():
            try:
                written = write_checkpoint(tenant_id, name, kept=kept)
            except ProofError as fault:
                refused.append(f"{name}: {fault}")
                continue
            if written is None:
                self.tell(f"{name}: nothing new since the last checkpoint.")
            elif not options["print"]:
                self.stdout.write(f"{name}\t{written.sequence}\t{written.hash}")
        if refused:
            raise CommandError("\n".join(refused))

    def _choose_store(self, **options: Any) -> Store:
        if options["print"]:
            earlier = options["after"].read_text("ascii").split() if options["after"] else []
            return LineStore(earlier, self.stdout.write)
        kept = FolderStore(options["folder"]) if options["folder"] else configured_store()
        if kept is None:
            raise CommandError(
                "Nothing says where to keep checkpoints: set CONSENTFUL_CHECKPOINTS, or give"
                " --folder or --print."
            )
        return kept

"""Prove that the trail is whole, and that every live row is the one it speaks of."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError
from django.db import IntegrityError
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from audit.actors import SYSTEM
from audit.checkpoints import Checkpoint, read_checkpoint, read_log
from audit.exceptions import ProofError, ProofRefused
from audit.exports import verify_export
from audit.findings import Finding, Tally
from audit.sealing import seal
from audit.signing import Keys, read_keys, trusted_keys
from audit.stores import LineStore, Store, configured_store
from audit.verification import verify
from tenants.commands import ServiceCommand
from tenants.results import report_verification
from tenants.trail import INSTALLATION, find_trails, nameless
from tenants.units import database, store, unit_of_work


class Command(ServiceCommand):
    help = (
        "Seal, then compute every hash again and compare every live row with its last event."
        " Prints one line per finding; exits with 1 where there is one."
    )

    is_job = True

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant", nargs="?", help="only this one; all of them by default")
        parser.add_argument(
            "--file",
            type=Path,
            help="verify a document of audit/export instead, without any database",
        )
        parser.add_argument(
            "--keys",
            type=Path,
            metavar="FILE",
            help="public keys to believe (JWK set or PEM); this installation's by default",
        )
        parser.add_argument(
            "--checkpoints",
            type=Path,
            metavar="FILE",
            help="checkpoints to find in the chain; the configured ones by default",
        )

    def run(self, *, tenant: str | None = None, **options: Any) -> None:
        try:
            keys = read_keys(_text_of(options["keys"])) if options["keys"] else trusted_keys()
            given = options["checkpoints"] and _text_of(options["checkpoints"]).split()
            if options["file"]:
                if tenant is not None:
                    raise CommandError("A tenant goes with no --file.", returncode=2)
                self._verify_file(options["file"], keys, given or [])
            else:
                kept = LineStore(given, self.stdout.write) if given else configured_store()
                trails = find_trails(tenant)
                if kept and tenant is None:
                    trails = {number: nameless(number) for number in kept.list_logs()} | trails
                self._verify_trails(trails, keys, kept)
        except ProofError as fault:
            raise CommandError(str(fault)) from fault

    def _verify_file(self, path: Path, keys: Keys, lines: Sequence[str]) -> None:
        """Needs no database: nothing here asks for one."""
        tally = Tally()
        with _opened(path) as file:
            signed = [read_checkpoint(line, keys) for line in lines]
            findings = verify_export(file, keys, tally=tally, checkpoints=signed)
        for finding in findings:
            self.stdout.write(f"{finding.code}\t{path.name}\t{finding.sentence}")
        if findings:
            raise CommandError(f"{tally.events} events: {len(findings)} findings.")
        if tally.extent:
            self.tell(f"{tally.extent} Compared with {tally.checkpoints} earlier checkpoints.")
        self.tell(f"{tally.events} events: nothing found.")

    def _verify_trails(self, trails: Mapping[int, str], keys: Keys, kept: Store | None) -> None:
        findings: dict[Finding, str] = {}  # each once: some are the installation's
        waits: list[str] = []
        events = rows = waiting = checkpoints = 0
        console = Console(stderr=True)
        with Progress(
            *_columns(), console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task("Verifying", total=len(trails), seen=0)

            def advance(count: int) -> None:
                progress.update(task, seen=progress.tasks[0].fields["seen"] + count)

            for tenant_id, name in trails.items():
                tally = Tally(advance=advance)
                for finding in self._verify(tenant_id, tally, keys, kept):
                    findings.setdefault(finding, name if finding.tenant_id else INSTALLATION)
                events, rows = events + tally.events, rows + tally.rows
                waiting, checkpoints = waiting + tally.waiting, checkpoints + tally.checkpoints
                if tally.transaction is not None:
                    waits.append(
                        f"{name}: {tally.waiting} events are waiting for transaction {tally.transaction}."
                    )
                progress.advance(task)
        report_verification(
            events=events,
            rows=rows,
            waiting=waiting,
            findings=len(findings),
            is_whole=0 in trails,
        )
        for wait in waits:
            self.tell(wait)
        for finding, name in findings.items():
            self.stdout.write(f"{finding.code}\t{name}\t{finding.sentence}")
        if findings:
            raise CommandError(f"{events} events, {rows} rows: {len(findings)} findings.")
        if kept:
            self.tell(f"Compared with {checkpoints} checkpoints.")
        self.tell(f"{events} events, {rows} rows: nothing found.")

    def _verify(
        self, tenant_id: int, tally: Tally, keys: Keys, kept: Store | None
    ) -> list[Finding]:
        findings = []
        checkpoints: list[Checkpoint] = []
        try:
            checkpoints = read_log(kept.read(tenant_id), keys) if kept else []
        except ProofRefused as fault:
            findings.append(
                Finding(code="checkpoint_forged", tenant_id=tenant_id, sentence=str(fault))
            )
        try:
            seal(tenant_id, using=database())
        except IntegrityError:
            # What stands in the sealer's way is named by the verification, if it can be.
            findings.append(
                Finding(
                    code="seal_refused",
                    tenant_id=tenant_id,
                    sentence="The chain cannot go on: a link stands where the head says there is none.",
                )
            )
        with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
            with store().cursor() as cursor:
                # A login's limit of time is for requests.
                cursor.execute("SELECT set_config('statement_timeout', '0', true)")
            findings += verify(
                tenant_id, using=database(), tally=tally, checkpoints=checkpoints, keys=keys
            )
        return findings


def _text_of(path: Path) -> str:
    with _opened(path) as file:
        return file.read()


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """
    Open a text file that the operator named.

    Raises:
        ProofRefused: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except OSError as fault:
        raise ProofRefused(f"{path} cannot be read: {fault.strerror}.") from fault
    except UnicodeDecodeError as fault:
        raise ProofRefused(f"{path} is no text in UTF-8.") from fault


def _columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trails, {task.fields[seen]} events and rows"),
        TimeElapsedColumn(),
    )

"""Prove that the trail is whole, and that every live row is the one it speaks of."""

from typing import Any

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
from audit.sealing import seal
from audit.verification import Finding, Tally, verify
from tenants.commands import ServiceCommand
from tenants.results import report_verification
from tenants.services import get_tenant
from tenants.trail import INSTALLATION, list_trails
from tenants.units import database, unit_of_work


class Command(ServiceCommand):
    help = (
        "Seal, then compute every hash again and compare every live row with its last event."
        " Prints one line per finding; exits with 1 where there is one."
    )

    is_job = True

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant", nargs="?", help="only this one; all of them by default")

    def run(self, *, tenant: str | None = None, **options: Any) -> None:
        trails = list_trails()
        if tenant is not None:
            found = get_tenant(slug=tenant)
            trails = {found.pk: found.slug}
        findings: dict[Finding, str] = {}  # each once: some are the installation's
        waits: list[str] = []
        events = rows = waiting = 0
        console = Console(stderr=True)
        with Progress(
            *_columns(), console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task("Verifying", total=len(trails), seen=0)

            def advance(count: int) -> None:
                progress.update(task, seen=progress.tasks[0].fields["seen"] + count)

            for tenant_id, name in trails.items():
                tally = Tally(advance=advance)
                for finding in self._verify(tenant_id, tally):
                    findings.setdefault(finding, name if finding.tenant_id else INSTALLATION)
                events, rows = events + tally.events, rows + tally.rows
                waiting += tally.waiting
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
            is_whole=tenant is None,
        )
        for wait in waits:
            self.tell(wait)
        for finding, name in findings.items():
            self.stdout.write(f"{finding.code}\t{name}\t{finding.sentence}")
        if findings:
            raise CommandError(f"{events} events, {rows} rows: {len(findings)} findings.")
        self.tell(f"{events} events, {rows} rows: nothing found.")

    def _verify(self, tenant_id: int, tally: Tally) -> list[Finding]:
        findings = []
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
            findings += verify(tenant_id, using=database(), tally=tally)
        return findings


def _columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trails, {task.fields[seen]} events and rows"),
        TimeElapsedColumn(),
    )

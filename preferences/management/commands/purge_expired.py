"""Delete records whose deadline has passed."""

from typing import Any

from rich.console import Console
from rich.progress import Progress

from preferences.jobs import purge_all
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Delete the records whose deadline has passed, in batches. They were gone for readers before."
    is_job = True

    def run(self, **options: Any) -> None:
        # A bar for a person who waits; nothing where nobody looks.
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("Purging", total=None)
            count = purge_all(tell=lambda total: progress.update(bar, completed=total))
        self.tell(f"Purged {count} expired records.")
        self.stdout.write(str(count))

"""Delete records whose deadline has passed."""

from typing import Any

from preferences.jobs import purge_all
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Delete the records whose deadline has passed, in batches. They were gone for readers before."

    def run(self, **options: Any) -> None:
        count = purge_all()
        self.tell(f"Purged {count} expired records.")
        self.stdout.write(str(count))

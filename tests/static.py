"""Static files as the service serves them, looked for once in a process of tests."""

from collections.abc import Mapping
from typing import Any, ClassVar

from whitenoise.middleware import WhiteNoiseMiddleware


class FoundOnce(WhiteNoiseMiddleware):
    """
    Keeps what the first chain of middleware has found.

    A service makes its chain once; Django's test client makes one for each client, and looking
    through all static files would take longer than most tests.
    """

    found: ClassVar[Mapping[str, Any] | None] = None

    def add_files_from_finders(self) -> None:
        if FoundOnce.found is None:
            super().add_files_from_finders()
            FoundOnce.found = self.files
        self.files = FoundOnce.found

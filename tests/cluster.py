"""
Where the embedded server of test runs keeps its data, and how it treats them.

Apart from what a developer serves: nothing in it has to survive the machine, and no transaction of
another service holds up its seals.
"""

import os
from pathlib import Path

from config import embedded

BELOW = Path(__file__).resolve().parent.parent / ".data"

DIRECTORY = Path(os.environ.get("DATA_DIR") or BELOW / "tests").absolute()

if DIRECTORY.parent == BELOW:
    embedded.SERVER_SETTINGS |= {"fsync": "off", "full_page_writes": "off"}

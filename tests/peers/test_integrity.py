"""The edits of `agent-memory-integrity` to a store at rest: each of them is found."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.peers.suites import require

require("agmi")

from agmi.check import LABELS  # noqa: E402

from agents.adapters.integrity import ATTACKER, IntegrityAdapter  # noqa: E402
from tests.audit.test_checkpoints import key, new_key  # noqa: E402, F401  a fixture


def test_the_program_finds_every_edit(database, superuser):
    """As whoever doubts it runs it, outside of any project that is set up."""
    ran = subprocess.run(
        [sys.executable, "-m", "agmi.check", "--adapter", "agents.adapters.integrity:IntegrityAdapter"],
        cwd=settings.BASE_DIR,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": database,
            "SIGNING_KEY": new_key(), ATTACKER: superuser.info.dsn,
        },
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = [line.split("  ")[0] for line in ran.stdout.splitlines() if line.endswith("  REPORTED")]
    assert said == list(LABELS.values())


@pytest.mark.usefixtures("key")
def test_what_nobody_touched_is_fine(superuser):
    """The control: what is found is the edit, not the test."""
    adapter = IntegrityAdapter(superuser)
    adapter.setup()
    try:
        adapter.seed(5)
        adapter.seed_other(2)
        adapter.reload()
        assert (adapter.verify(), adapter.verify_detail) == (True, None)
    finally:
        adapter.teardown()

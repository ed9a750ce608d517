"""The edits of `agent-memory-integrity` to a store at rest: each of them is found."""

import subprocess
import sys

import pytest

from tests.peers.suites import require

require("agmi")

from agmi.attacks.base import Attack  # noqa: E402
from agmi.check import LABELS, render, run  # noqa: E402

from agents.adapters.integrity import IntegrityAdapter  # noqa: E402
from tests.audit.test_checkpoints import key  # noqa: E402, F401  a fixture

pytestmark = pytest.mark.usefixtures("key")


def test_every_edit_is_found(superuser):
    rows = run(IntegrityAdapter(superuser))
    print(render("consentful", rows))
    assert [row["edit"] for row in rows] == list(LABELS.values())
    assert {
        row["edit"]: (row["verdict"], row["detail"]) for row in rows if row["verdict"] != "REPORTED"
    } == {}


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

"""Requests generated from the OpenAPI document, sent to the running service in two tenants."""

import os
import subprocess
import sys

import django
import pytest
from django.conf import settings

from tests.contract.foreign import MARKER, fill
from tests.http.conftest import World

pytestmark = pytest.mark.skipif(
    django.VERSION < (6, 0), reason="the document is the same everywhere: once, with the newest"
)

#: The same requests in every run. Names of what exists are given, since no schema can tell them;
#: everything else is made from the document, well-formed and malformed, one by one and in chains.
CONFIG = """
seed = 20
hooks = "tests.contract.hooks"
continue-on-failure = true
warnings = false

[auth.openapi.bearer]
bearer = "{token}"

[cache]
enabled = false

[generation]
database = "none"
max-examples = 6
no-shrink = true

[parameters]
"path.tenant" = "{tenant}"
"path.subject" = "{person}"
"path.address" = "{scope}/k"
"path.purpose" = "support"
"query.scope" = "{scope}"
"query.key" = "k"
"query.reason" = "asked by mail"

[phases.stateful]
max-steps = 5
generation.max-examples = 8

[checks]
positive_data_acceptance.expected-statuses = ["2xx", 304, 401, 403, 404, 409, "5xx"]

# What is well-formed may still be refused for what stands there, and no schema can say it: a
# cursor that this list signed, a deadline that lies ahead, a revision that agrees with If-Match,
# a scope inside a body, the version of a notice, how many bytes a text has, the rules of a key, on
# what a purpose rests. (Of an entity tag the document gives the pattern,
# which the tool does not follow in every phase.) The other operations take all that they promise.
[[operations]]
include-operation-id = [
    "get_Trail", "get_SubjectActivity", "post_Erasures", "get_Preferences", "put_Preference", "delete_Preference", "post_Batch",
    "put_Consent", "get_Preference", "put_Restriction", "put_KeyRestriction",
    "delete_KeyRestriction", "put_Objection", "delete_Objection", "put_Guardian", "put_Hold",
    "delete_Hold", "post_Context", "post_Archive", "post_Restore",
]
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.parametrize(
    ("role", "person", "scope"), [("owner", "alice", "project::x"), ("alice", "me", "me")]
)
def test_everything_is_as_documented(server, tmp_path, role, person, scope):
    world, other = World(), World()
    fill(other)
    world.alice.give("me", "support")
    config = tmp_path / "schemathesis.toml"
    api = getattr(world, role)
    config.write_text(
        CONFIG.format(token=api.token, tenant=world.tenant.slug, person=person, scope=scope)
    )
    result = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run",
         "--no-color", "--checks", "all", f"{server}/api/v1/schema/"],
        cwd=settings.BASE_DIR,
        env=os.environ | {"CONTRACT_MARKER": MARKER, "PYTHONPATH": str(settings.BASE_DIR)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr

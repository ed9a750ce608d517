"""
The suites and the client of others, against the running service.

They are fetched by `python -m nox -s mcp`, which says by its environment where they lie; without
it these tests are skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from agents.tool_schemas import TOOLS
from tests.agents.client import LEGACY, MODERN
from tests.config.processes import PATIENCE, make_environment
from tests.conftest import run_service
from tests.http.conftest import World

#: By revision, the scenarios that are about what this server has not, and why.
BASELINES = Path(__file__).parent

CONFORMANCE = os.environ.get("MCP_CONFORMANCE", "")  # a node and the suite's script
OTHERS = os.environ.get("MCP_OTHERS", "")  # folder of an environment's programs

WHY = "fetched by `python -m nox -s mcp` alone"


@pytest.fixture(scope="module")
def endpoint(database):
    """The endpoint of a service that takes everybody for one agent: the suite sends no token."""
    world = World()
    with run_service(
        "--no-housekeeping",
        DJANGO_SETTINGS_MODULE="tests.agents.suite_settings",
        TEST_DATABASE=database,
        WEB_CONCURRENCY="1",
        MCP_SUITE_TOKEN=world.bound.token,
    ) as (url, _):
        yield f"{url}/mcp/{world.tenant.slug}"


@pytest.mark.skipif(not CONFORMANCE, reason=f"the conformance suite is {WHY}")
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
def test_conformance(endpoint, tmp_path, revision):
    """Whatever is no longer failing must leave the baseline: the suite insists on it."""
    finished = subprocess.run(
        [*CONFORMANCE.split(os.pathsep), "server", "--url", endpoint,
         "--requirements", revision, "--output-dir", str(tmp_path),
         "--expected-failures", str(BASELINES / f"conformance-{revision}.yml")],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-6000:] + finished.stderr


@pytest.mark.skipif(not OTHERS, reason=f"mcpcheck is {WHY}")
def test_mcpcheck(server, world):
    finished = subprocess.run(
        [f"{OTHERS}/mcpcheck", f"{server}/mcp/{world.tenant.slug}", "--token", world.bound.token,
         "--legacy-probes", "--probe", "all", "--no-color"],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert world.alice.listing().json["results"] == []


@pytest.mark.skipif(not OTHERS, reason=f"the official Python client is {WHY}")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_the_official_client(server, world, mode, way):
    url = f"{server}/mcp/{world.tenant.slug}"
    target = [url, mode]
    if way == "stdio":
        target = ["stdio", mode, sys.executable, "manage.py", "mcp_stdio"]
    finished = subprocess.run(
        [f"{OTHERS}/python", str(Path(__file__).parent / "official_client.py"), *target],
        cwd=settings.BASE_DIR,
        env=make_environment(
            CONSENTFUL_TOKEN=world.bound.token, CONSENTFUL_MCP_URL=url,
            DJANGO_SETTINGS_MODULE="tests.settings",
        ),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    told = json.loads(finished.stdout)
    assert told["version"] == (MODERN if mode == "auto" else LEGACY)
    assert told["tools"] == list(TOOLS)
    assert (told["made"]["scope"], told["made"]["value"]) == ("user::alice", {"a": [1, "é"]})
    assert told["again"] == [True, "already_exists"]
    assert told["read"]["revision"] == told["made"]["revision"]
    assert [one["key"] for one in told["listed"]["results"]] == ["note"]
    is_refused, given = told["forgotten"]
    if mode == "auto":
        assert (is_refused, given["confirmed"]) == (False, True)
    else:
        assert (is_refused, given["code"]) == (True, "validation_error")
    assert told["gone"] == "not_found"
    assert world.alice.read("me", "note").status == 404

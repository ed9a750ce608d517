"""What is counted and measured, who may read it, and that nothing is missed without the packages."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections
from django.test import Client
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from audit.actors import SYSTEM
from audit.sealing import seal
from config.environment import read_secret
from config.metrics import make_registry
from preferences.backlog import BacklogCollector, measure_backlog
from preferences.services import purge_expired
from tenants.results import VERIFICATION, report_verification
from tenants.units import unit_of_work
from tests.config.processes import find_processes, run, wait_until
from tests.conftest import find_free_port, run_service
from tests.factories import make_persona, make_tenant
from tests.http.client import API, CODES

TOKEN = "0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ADDRESS = "api/v1/tenants/<tenant>/preferences/<address>"
DOCS = Path(settings.BASE_DIR) / "docs"


@pytest.fixture
def tenant() -> Any:
    return make_tenant()


@pytest.fixture
def alice(tenant: Any) -> API:
    return API(tenant.slug, make_persona(tenant, "alice").token)


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"consentful_{name}", labels) or 0.0


@pytest.fixture
def growth() -> Callable[..., Callable[[], float]]:
    """How much a counter has grown since it was asked for."""

    def watch(name: str, **labels: str) -> Callable[[], float]:
        before = count(name, **labels)
        return lambda: count(name, **labels) - before

    return watch


def test_requests_are_counted_by_route_and_code(alice: API, growth: Any) -> None:
    label = {"method": "PUT", "route": ADDRESS}
    created = growth("requests_total", **label, status="201", code="")
    refused = growth("requests_total", **label, status="409", code="already_exists")
    seconds = growth("request_seconds_count", route=ADDRESS)
    conflicts = growth("conflicts_total", code="already_exists")
    alice.put("preferences/me/k", {"value": 1})
    alice.put("preferences/me/k", {"value": 2})
    assert [one() for one in (created, refused, seconds, conflicts)] == [1, 1, 2, 1]


def test_labels_hold_no_word_of_a_caller(alice: API, growth: Any) -> None:
    other = growth("requests_total", method="_OTHER", route=ADDRESS, status="405",
                   code="method_not_allowed")  # fmt: skip
    unknown = growth("requests_total", method="GET", route="unknown", status="404",
                     code="not_found")  # fmt: skip
    alice.request("MARKER", "preferences/me/marker")
    Client().get("/marker/marker")
    assert [other(), unknown()] == [1, 1]
    samples = [one for family in REGISTRY.collect() for one in family.samples]
    assert not [one for one in samples if "marker" in str(one.labels).lower()]


def test_decisions_of_the_gate_are_counted_from_the_outcome(tenant: Any, growth: Any) -> None:
    alice, agent = (API(tenant.slug, make_persona(tenant, one).token) for one in ("alice", "agent"))
    allowed = growth("gate_decisions_total", decision="allowed", reason="")
    without = growth("gate_decisions_total", decision="refused", reason="consent_required")
    purpose = growth("gate_decisions_total", decision="refused", reason="purpose_not_allowed")

    def grown() -> tuple[float, float, float]:
        return allowed(), without(), purpose()

    alice.put("preferences/me/tone", {"value": 1})
    alice.get("preferences/me/tone")
    assert grown() == (0, 2, 0)
    alice.give("me", "support")
    once = {"Idempotency-Key": "a"}
    alice.put("preferences/me/tone", {"value": 1}, headers=once)
    assert grown() == (1, 2, 0)
    alice.get("preferences/me/tone")
    alice.get("preferences/me/none")
    assert grown() == (3, 2, 0)
    alice.get("preferences?scope=me")
    assert grown() == (4, 2, 0)
    agent.put("preferences/user%3A%3Aalice/banner", {"value": 1})
    agent.delete("preferences/user%3A%3Aalice/banner")
    assert grown() == (4, 2, 2)
    # Nobody decides about shared records, nor about a delete of one's own.
    alice.get("preferences/global/none")
    alice.delete("preferences/me/tone")
    assert grown() == (4, 2, 2)


def test_conflicts_inside_batches_and_decisions_are_counted(alice: API, growth: Any) -> None:
    stale = growth("conflicts_total", code="stale_revision")
    operation = {"op": "put", "scope": "me", "value": 1, "revision": "0" * 32}
    alice.post(
        "preferences/batch",
        {"atomic": False, "operations": [operation | {"key": "a"}, operation | {"key": "b"}]},
    )
    assert stale() == 2
    alice.give("me", "support", entry="0" * 32)
    assert stale() == 3


@pytest.mark.usefixtures("alone")
def test_lags_are_measured_over_all_tenants(tenant: Any, alice: API, growth: Any) -> None:
    assert seal(tenant.pk, using="default") > 0
    before = measure_backlog()
    alice.put("preferences/me/k", {"value": 1, "ttl_seconds": 1})
    alice.put("preferences/me/l", {"value": 1})
    time.sleep(1.2)
    after = measure_backlog()
    assert after.expired == before.expired + 1
    assert after.expired_seconds > 0.1
    assert after.unsealed == before.unsealed + 2
    assert after.unsealed_seconds >= 1.2
    purged = growth("purged_total")
    assert purge_expired(tenant_id=tenant.pk, actor=SYSTEM) == 1
    assert purged() == 1
    seal(tenant.pk, using="default")
    last = measure_backlog()
    assert (last.expired, last.unsealed) == (before.expired, before.unsealed)


def test_measuring_keeps_out_of_a_unit_of_work(tenant: Any) -> None:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        with pytest.raises(RuntimeError, match="unit of work is open"):
            measure_backlog()


def test_counting_stops_early(tenant: Any, alice: API, monkeypatch: pytest.MonkeyPatch) -> None:
    from preferences import backlog

    for number in range(4):
        alice.put(f"preferences/me/{number}", {"value": 1})
    monkeypatch.setattr(backlog, "MEASURE", backlog.MEASURE.replace("LIMIT 1000", "LIMIT 1"))
    every = measure_backlog().unsealed
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) + 1 FROM consentful_tenant")
        assert every <= cursor.fetchone()[0]


def test_a_store_that_is_away_is_told_apart_from_no_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(list(BacklogCollector().collect())) == 5
    connection = connections["default"]
    connection.close()
    monkeypatch.setattr(
        connection, "settings_dict",
        connection.settings_dict | {"HOST": "127.0.0.1", "PORT": find_free_port(), "OPTIONS": {}},
    )  # fmt: skip
    [family] = BacklogCollector().collect()
    assert (family.name, family.samples[0].value) == ("consentful_store_up", 0)


def test_a_verification_of_everything_leaves_its_result(tmp_path: Path, settings: Any) -> None:
    settings.CONSENTFUL_METRICS_DIRECTORY = tmp_path / "deep" / "metrics"
    file = settings.CONSENTFUL_METRICS_DIRECTORY / VERIFICATION
    facts = {"events": 1, "rows": 1, "waiting": 0}
    report_verification(**facts, findings=2, is_whole=True)
    report_verification(**facts, findings=0, is_whole=False)
    families = {one.name: one for one in text_string_to_metric_families(file.read_text())}
    assert families["consentful_verify_findings"].samples[0].value == 2
    age = time.time() - families["consentful_verify_timestamp"].samples[0].value
    assert 0 <= age < 60
    assert list(file.parent.iterdir()) == [file]


def test_a_place_that_cannot_be_written_does_not_stop_a_verification(
    tmp_path: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    settings.CONSENTFUL_METRICS_DIRECTORY = tmp_path / "file"
    report_verification(events=1, rows=1, waiting=0, findings=0, is_whole=True)
    assert [one.event for one in caplog.records] == ["verify", "job_refused"]  # type: ignore[attr-defined]


def test_without_a_token_there_is_no_such_address(settings: Any) -> None:
    settings.METRICS_TOKEN = None
    for headers in ({}, BEARER, {"Authorization": "Bearer None"}):
        answer = Client().get("/metrics", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_only_the_token_opens_it(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    for given, code in (
        ("", "not_authenticated"),
        ("Basic x", "not_authenticated"),
        ("Bearer ", "not_authenticated"),
        (f"Bearer {TOKEN}0", "invalid_token"),
        ("Bearer é", "invalid_token"),
    ):
        answer = Client().get("/metrics", headers={"Authorization": given})
        assert (answer.status_code, answer.json()["code"]) == (401, code), given
        assert answer["WWW-Authenticate"].startswith("Bearer")
    answer = Client().get("/metrics", headers=BEARER)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert Client().post("/metrics", headers=BEARER).status_code == 405


@pytest.mark.parametrize("given", ["short", "with blanks in between them"])
def test_a_weak_token_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICS_TOKEN", given)
    with pytest.raises(ImproperlyConfigured, match="METRICS_TOKEN must have") as refusal:
        read_secret("METRICS_TOKEN")
    assert given not in str(refusal.value)


# Several processes --------------------------------------------------------------------------------

PREPARE = """
import django
django.setup()
from tests.factories import make_persona, make_tenant
from tests.http.client import API, CODES

tenant = make_tenant()
alice = API(tenant.slug, make_persona(tenant, "alice").token)
assert alice.put("preferences/me/k", {"value": 1, "ttl_seconds": 1}).status == 201
"""


def test_all_processes_of_a_service_count_together(
    copy_complete: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "TEST_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    place = {"DATA_DIR": str(copy_complete(tmp_path / "data"))}
    prepared = run(
        "-c", PREPARE, DJANGO_SETTINGS_MODULE="tests.settings", TEST_DATABASE="consentful", **place
    )
    assert prepared.returncode == 0, prepared.stderr
    with run_service(
        WEB_CONCURRENCY="2", METRICS_TOKEN=TOKEN, DJANGO_SETTINGS_MODULE="config.settings", **place
    ) as (url, _):
        for _ in range(40):
            httpx.get(f"{url}/readyz")
        wait_until(lambda: scrape(url)["consentful_purged_total"] == 1)
        wait_until(lambda: scrape(url)["consentful_unsealed_events"] == 0)
        ready = 'consentful_requests_total{code="",method="GET",route="readyz",status="200"}'
        assert {scrape(url)[ready] for _ in range(10)} == {40}
        assert "consentful_verify_findings" not in scrape(url)
        verified = run("manage.py", "verify_audit", **place)
        assert verified.returncode == 0, verified.stderr
        assert scrape(url)["consentful_verify_findings"] == 0
        assert scrape(url)["consentful_expired_waiting"] == 0
    wait_until(lambda: not find_processes(tmp_path))


def scrape(url: str) -> dict[str, float]:
    answer = httpx.get(f"{url}/metrics", headers=BEARER)
    assert answer.status_code == 200
    lines = [one for one in answer.text.splitlines() if not one.startswith("#")]
    return {name: float(value) for name, _, value in (one.rpartition(" ") for one in lines)}


# Without the packages -----------------------------------------------------------------------------

HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("prometheus_client", "opentelemetry"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
import json
import django
django.setup()
from django.conf import settings
from django.test import Client
from audit.actors import SYSTEM
from config.wsgi import application
from preferences.services import purge_expired
from tests.factories import make_persona, make_tenant
from tests.http.client import API, CODES

settings.METRICS_TOKEN = "0123456789abcdef"
tenant = make_tenant()
alice = API(tenant.slug, make_persona(tenant, "alice").token)
print(json.dumps([
    alice.put("preferences/me/k", {"value": 1}).status,
    alice.put("preferences/me/k", {"value": 1}).status,
    alice.get("preferences/me/tone").status,
    alice.give("me", "support").status,
    purge_expired(tenant_id=tenant.pk, actor=SYSTEM),
    Client().get("/metrics", headers={"Authorization": "Bearer 0123456789abcdef"}).status_code,
    sorted({one.split(".")[0] for one in sys.modules} & {"prometheus_client", "opentelemetry"}),
]))
"""


def test_everything_works_without_the_packages(database: str) -> None:
    kept = {
        name: os.environ[name]
        for name in ("DATA_DIR", "DATABASE_URL", "DATABASE_OWNER_URL")
        if name in os.environ
    }
    finished = run(
        "-c", HIDDEN, DJANGO_SETTINGS_MODULE="tests.settings", TEST_DATABASE=database,
        **kept,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == [201, 409, 403, 200, 0, 404, []]


# The manual ---------------------------------------------------------------------------------------


def known_metrics(alice: API) -> set[str]:
    """Return the name of every metric, counters with their suffix."""
    alice.get("preferences/me/none")
    found = set()
    for family in make_registry().collect():
        if family.name.startswith("consentful_"):
            found.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return found


def test_every_metric_is_documented_and_no_other(alice: API, tmp_path: Path, settings: Any) -> None:
    settings.CONSENTFUL_METRICS_DIRECTORY = tmp_path
    report_verification(events=1, rows=1, waiting=0, findings=0, is_whole=True)
    page = (DOCS / "reference/metrics.md").read_text("utf-8")
    documented = re.findall(r"^\| `(consentful_\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert {name for name, _ in documented} == known_metrics(alice)


def test_alerts_name_metrics_that_exist(alice: API, tmp_path: Path, settings: Any) -> None:
    settings.CONSENTFUL_METRICS_DIRECTORY = tmp_path
    report_verification(events=1, rows=1, waiting=0, findings=0, is_whole=True)
    page = (DOCS / "how-to/monitor.md").read_text("utf-8")
    named = set(re.findall(r"\bconsentful_[a-z_]+", page))
    suffixes = re.compile(r"(_bucket|_sum|_count)$")
    known = known_metrics(alice)
    assert named
    assert {suffixes.sub("", one) for one in named} <= known
    # And what an alert compares a label with is a value that occurs.
    for label, value in re.findall(r'(code|reason|decision)=~?"([^"]*)"', page):
        known_words = {"allowed", "refused"} if label == "decision" else set(CODES)
        assert set(re.split(r"\\?\|", value)) <= known_words, (label, value)

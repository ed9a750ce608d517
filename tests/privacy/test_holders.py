"""A host's holders: asked after the commit, again until they succeed, each for itself."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM
from privacy.jobs import open_erasures, run_erasure
from privacy.models import Erasure, ErasureHolder
from tenants.units import unit_of_work
from tests.conftest import PATIENCE, ROOT
from tests.http.conftest import Clock, World
from tests.privacy.dumps import dump, find_lines
from tests.privacy.hosts import times_asked
from tests.trails import prove

NAMES = ["tests.privacy.hosts.Index", "tests.privacy.hosts.Cache"]


@pytest.fixture
def host(world: World, tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The folder of a host's search index and cache, with something about two persons."""
    folder = tmp_path / "host"
    folder.mkdir()
    for name in ("search_index", "cache"):
        (folder / f"{name}.json").write_text(
            json.dumps({f"{world.tenant.pk}:alice": ["a", "b"], f"{world.tenant.pk}:bob": ["c"]})
        )
    settings.HOST_FOLDER = str(folder)
    settings.CONSENTFUL_PERSONAL_DATA = NAMES
    yield folder
    for word in ("broken", "lying", "slow"):
        (folder / word).unlink(missing_ok=True)
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        # What a test left open is nobody's to go on with.
        ErasureHolder.objects.filter(tenant=world.tenant, is_external=True).update(status="done")
    run(world)


def run(world: World) -> None:
    """Ask what is due in this tenant, as housekeeping does in all of them."""
    for reference, tenant_id in open_erasures():
        if tenant_id == world.tenant.pk:
            run_erasure(reference)


def states(answer: Any) -> dict[str, str]:
    return {
        one["holder"]: one["status"]
        for one in answer.json["holders"]
        if one["holder"] in ("search_index", "cache")
    }


def test_holders_are_asked_after_the_commit(world: World, host: Path) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    answer = world.alice.post("subjects/me/erasures", {})
    assert (answer.status, answer.json["status"]) == (201, "pending")
    assert states(answer) == {"search_index": "pending", "cache": "pending"}
    assert times_asked(host, "search_index") == 0
    assert world.alice.get(f"erasures/{answer.json['id']}/receipt").outcome == (404, "not_found")
    # The same request is the same erasure while it is not finished.
    assert world.alice.post("subjects/me/erasures", {}).json["id"] == answer.json["id"]
    run(world)
    after = world.alice.get(f"erasures/{answer.json['id']}")
    assert after.json["status"] == "done"
    found = {one["holder"]: one for one in after.json["holders"]}
    assert (found["search_index"]["status"], found["search_index"]["erased"]) == ("done", 2)
    assert json.loads((host / "cache.json").read_text()) == {f"{world.tenant.pk}:bob": ["c"]}
    prove(world.tenant)


def test_C064_one_fails_with_a_reason_and_is_asked_again_alone(
    world: World, host: Path, frozen: Clock
) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    (host / "broken").touch()
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    run(world)
    answer = world.alice.get(f"erasures/{reference}")
    assert answer.json["status"] == "failed"
    assert states(answer) == {"search_index": "failed", "cache": "done"}
    (failed,) = [one for one in answer.json["holders"] if one["status"] == "failed"]
    assert failed["reason"] == "The index does not answer."
    assert failed["next_attempt_at"] is not None
    # Not before the pause is over, and the pauses grow.
    run(world)
    assert times_asked(host, "search_index") == 1
    frozen.move(11)
    run(world)
    frozen.move(11)
    run(world)
    assert times_asked(host, "search_index") == 2
    (host / "broken").unlink()
    frozen.move(3600)
    run(world)
    assert states(world.alice.get(f"erasures/{reference}")) == {
        "search_index": "done", "cache": "done",
    }  # fmt: skip
    assert (times_asked(host, "search_index"), times_asked(host, "cache")) == (3, 1)


def test_a_holder_that_says_it_erased_and_did_not_has_failed(world: World, host: Path) -> None:
    (host / "lying").touch()
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    run(world)
    answer = world.alice.get(f"erasures/{reference}")
    assert states(answer)["search_index"] == "failed"
    (failed,) = [one for one in answer.json["holders"] if one["status"] == "failed"]
    assert failed["reason"] == "After it was asked to erase, 2 things are still there."
    (host / "lying").unlink()


def test_the_name_is_kept_for_the_holders_alone_and_goes_with_the_last(
    world: World, host: Path, tmp_path: Path
) -> None:
    marker = f"zzheld{world.tenant.slug.replace('-', '')}"
    assert world.operator.write(f"user::{marker}", "theme", "dark").status == 201
    world.operator.post(f"subjects/{marker}/erasures", {}, query={"reason": "asked"})
    dump(tmp_path / "open.sql")
    assert {line.partition(":")[0] for line in find_lines(marker, tmp_path / "open.sql")} == {
        "public.consentful_erasure"
    }
    run(world)
    dump(tmp_path / "done.sql")
    assert find_lines(marker, tmp_path / "done.sql") == []


def test_a_killed_job_is_taken_up_again(world: World, host: Path, frozen: Clock) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    (host / "slow").touch()
    script = (
        "import django; django.setup(); from django.conf import settings;"
        f" settings.HOST_FOLDER = {str(host)!r}; settings.CONSENTFUL_PERSONAL_DATA = {NAMES!r};"
        " from privacy.jobs import run_erasures; run_erasures()"
    )
    from django.db import connection

    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL,
        env=os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_DATABASE": connection.settings_dict["NAME"],
        },
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while times_asked(host, "search_index") == 0:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    (host / "slow").unlink()
    answer = world.alice.get(f"erasures/{reference}")
    assert states(answer) == {"search_index": "pending", "cache": "pending"}
    # Somebody may still be at it; nobody is after two minutes.
    frozen.move(121)
    call_command("run_erasures")
    answer = world.alice.get(f"erasures/{reference}")
    assert states(answer) == {"search_index": "done", "cache": "done"}
    assert answer.json["status"] == "done"
    prove(world.tenant)


def test_a_host_that_hands_erasures_to_its_queue_names_nobody(
    world: World, host: Path, settings: Any
) -> None:
    settings.CONSENTFUL_ERASURE_JOBS = f"{__name__}.give_to_queue"
    QUEUE.clear()
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    assert [reference] == QUEUE


#: What the host's queue was given.
QUEUE: list[str] = []


def give_to_queue(reference: str) -> None:
    QUEUE.append(reference)


def test_the_list_outside_has_each_erasure_once(
    world: World, settings: Any, tmp_path: Path
) -> None:
    """An attempt that was killed after it had added the line is followed by another."""
    settings.CONSENTFUL_SUPPRESSIONS = str(tmp_path / "list")
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    (file,) = (tmp_path / "list").iterdir()
    assert len(file.read_text().splitlines()) == 1
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        found = Erasure.objects.filter(tenant=world.tenant, reference=reference)
        found.update(status="pending", finished_at=None)
        ErasureHolder.objects.filter(
            tenant=world.tenant, erasure__in=found, holder="suppression_list"
        ).update(status="pending", due_at=RawSQL("consentful_now()", []))
    assert run_erasure(reference)
    assert len(file.read_text().splitlines()) == 1

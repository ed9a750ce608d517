"""The service's job queue: given with what it follows, worked off by a process of its own, naming nobody."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from config.jobs import give_to_queue
from tests.conftest import PATIENCE, ROOT
from tests.http.conftest import World, world
from tests.privacy.test_holders import NAMES, host, states

__all__ = ["host", "world"]


@pytest.fixture
def queue(settings: Any) -> Iterator[None]:
    settings.CONSENTFUL_ERASURE_JOBS = "config.jobs.give_to_queue"
    execute("DELETE FROM procrastinate_jobs")
    yield
    execute("DELETE FROM procrastinate_jobs")


def execute(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def jobs() -> list[Any]:
    return execute(
        "SELECT task_name, args ->> 'reference', status FROM procrastinate_jobs ORDER BY id"
    )


def run_due(host: Path) -> None:
    """Work off what is due, in a process of its own as always."""
    script = (
        "import asyncio, django; django.setup(); from django.conf import settings;"
        f" settings.HOST_FOLDER = {str(host)!r}; settings.CONSENTFUL_PERSONAL_DATA = {NAMES!r};"
        " from config.jobs import QUEUE, app; from config.worker import for_workers, work;"
        " asyncio.run(work(for_workers(app), queue=QUEUE, wait=False))"
    )
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=os.environ | environment(), check=True,
        stdin=subprocess.DEVNULL, timeout=PATIENCE,
    )  # fmt: skip


def environment() -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_DATABASE": str(connection.settings_dict["NAME"]),
    }


@pytest.mark.usefixtures("queue")
def test_a_job_is_given_with_the_erasure_and_names_nobody(world: World, host: Path) -> None:
    reference = world.alice.post("subjects/me/erasures", {}).json["id"]
    assert jobs() == [("consentful.ask_holders", reference, "todo")]
    run_due(host)
    assert jobs() == []
    answer = world.alice.get(f"erasures/{reference}")
    assert (answer.json["status"], states(answer)) == (
        "done", {"search_index": "done", "cache": "done"},
    )  # fmt: skip


@pytest.mark.usefixtures("queue")
def test_a_job_goes_with_the_transaction_that_gave_it() -> None:
    with transaction.atomic():
        give_to_queue("0" * 32)
        transaction.set_rollback(True)
    assert jobs() == []


@pytest.mark.usefixtures("queue")
def test_a_job_is_tried_again_while_a_holder_fails(world: World, host: Path) -> None:
    (host / "broken").touch()
    world.alice.post("subjects/me/erasures", {})
    run_due(host)
    ((_, _, status),) = jobs()
    assert status == "todo"
    ((is_later,),) = execute("SELECT scheduled_at > now() FROM procrastinate_jobs")
    assert is_later


@pytest.mark.usefixtures("queue")
def test_the_process_beside_the_service_works_it_off(world: World, host: Path) -> None:
    """With the runtime login, whose rights end at its own tables."""
    process = subprocess.Popen(
        [sys.executable, "-m", "config.worker"], cwd=ROOT, stdin=subprocess.DEVNULL,
        env=os.environ | environment(),
    )  # fmt: skip
    try:
        give_to_queue("0" * 32)  # an erasure that is not there is finished
        deadline = time.monotonic() + PATIENCE
        while jobs():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0

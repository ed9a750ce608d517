"""The demo, run for real as an operator runs it, and told by a service that answers wrongly."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from rich.console import Console

from config.demo import Answer, Narrator, Service, StepFailed, Story, shorten
from tests.config.processes import find_processes

PLACES = ("DATABASE_OWNER_URL", "DJANGO_SETTINGS_MODULE", "TEST_DATABASE", "FORCE_COLOR")


def start_demo(directory: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in PLACES}
    return subprocess.Popen(
        [sys.executable, "manage.py", "demo"],
        cwd=settings.BASE_DIR,
        env=environment
        | {
            "DATA_DIR": str(directory),
            # Neither may be used: nothing listens there, and the name fits no request.
            "DATABASE_URL": "postgresql://nobody:secret@127.0.0.1:1/nothing",
            "ALLOWED_HOSTS": "consentful.example",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell started in the background ignores, its children would ignore too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def make_story(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> tuple[Story, io.StringIO]:
    monkeypatch.setattr(Service, "send", lambda self, *args, **options: answer)
    written = io.StringIO()
    service = Service(Path("unused"), Path("unused"), port=1)
    story = Story(service, Narrator(Console(file=written)))
    story.tokens = {"alice": "unused", "bob": "unused", "eve": "unused"}
    return story, written


def test_the_whole_story_comes_out_and_leaves_nothing(tmp_path: Path) -> None:
    process = start_demo(tmp_path)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err
    assert "All 13 steps came out as they should" in out
    assert "row_edited | acme | preference" in out
    assert "\x1b" not in out
    assert "DATABASE_URL is not used" in err
    assert "secret" not in out + err
    assert list(tmp_path.iterdir()) == []
    assert find_processes(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_demo_stops_what_it_started(tmp_path: Path, number: int) -> None:
    process = start_demo(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("3. "):
            break
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode not in (0, -signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
    assert find_processes(tmp_path) == []


def test_a_killed_demo_takes_its_server_along(tmp_path: Path) -> None:
    process = start_demo(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("3. "):
            break
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while (found := find_processes(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(201, '{"value": "brief"}'),
        Answer(403, '{"code": "permission_denied", "purpose": "support"}'),
        Answer(403, '{"code": "consent_required"}'),
        Answer(403, "[]"),
        Answer(403, "no JSON"),
        Answer(500, ""),
    ],
)
def test_another_answer_than_the_expected_one_fails_the_step(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    story, _ = make_story(monkeypatch, answer)
    with pytest.raises(StepFailed, match=f"(?s)expected: status 403.*got: {answer.status}"):
        story.refuse_without_consent()


def test_a_value_served_after_its_deadline_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    story, _ = make_story(monkeypatch, Answer(200, "{}"))
    with pytest.raises(StepFailed, match="no value after the deadline"):
        story.watch_expiry(time.time() - 1)


def test_a_value_gone_before_its_deadline_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    story, _ = make_story(monkeypatch, Answer(404, "{}"))
    with pytest.raises(StepFailed, match="no 404 before the deadline"):
        story.watch_expiry(time.time() + 60)


def test_an_expiry_that_was_never_seen_alive_fails_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story, _ = make_story(monkeypatch, Answer(404, "{}"))
    with pytest.raises(StepFailed, match="a 200 before the deadline"):
        story.watch_expiry(time.time() - 1)


def test_a_stale_refusal_must_name_the_current_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    story, _ = make_story(
        monkeypatch, Answer(409, '{"code": "stale_revision", "current": {"revision": "other"}}')
    )
    with pytest.raises(StepFailed, match="the current revision newest"):
        story.refuse_stale("oldest", "newest", why="")


def test_request_answer_and_reason_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    story, written = make_story(
        monkeypatch, Answer(403, '{"code": "consent_required", "purpose": "support"}')
    )
    story.refuse_without_consent()
    assert written.getvalue().splitlines() == [
        "",
        "1. Refused without consent",
        '   alice > PUT /api/v1/tenants/acme/preferences/me/reply_style  {"value": "brief"}',
        '   < 403 consent_required, purpose "support"',
        "     The purpose rests on consent, and alice has not given any: nothing is stored.",
    ]


def test_a_terminal_gets_colours() -> None:
    written = io.StringIO()
    Narrator(Console(file=written, force_terminal=True, color_system="standard")).step("Title")
    assert "\x1b[" in written.getvalue()


def test_revisions_are_shortened_and_other_texts_are_not() -> None:
    assert shorten("0123456789abcdef" * 2) == "01234567..."
    assert shorten("brief") == '"brief"'
    assert shorten({"revision": "ab" * 16, "expires_at": None}) == "(revision abababab...)"

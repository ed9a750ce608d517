"""
The story that `make demo` tells: one preference's life, against the real service.

Here belong the steps, what each must answer and why, and the processes they need. Everything is
asked from outside, over HTTP and through the commands that an operator uses; nothing here may
import an app, or a step could come out right without the service being so.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import psycopg
from rich.console import Console
from rich.text import Text

from config.commands import Shell, open_shell
from config.embedded import PORT, SUPERUSER, get_embedded_server
from config.lifeline import VARIABLE
from config.postgresql.bootstrap import DATABASE

HOST = "127.0.0.1"
KEY = "reply_style"
PURPOSE = "support"

#: Meant for the service that the caller runs, not for the one of the demo. FORCE_COLOR would
#: put escapes into output that is read here.
FOREIGN = (
    "DATABASE_URL", "DATABASE_OWNER_URL", "SECRET_KEY", "SECRET_KEY_FALLBACKS", "SIGNING_KEY",
    "DEBUG", "ALLOWED_HOSTS", "WEB_CONCURRENCY", "TEST_DATABASE", "FORCE_COLOR",
)  # fmt: skip

#: Seconds: far more than each takes, so that a slow machine is no failure.
COMMAND_SECONDS = 120.0
START_SECONDS = 60.0
STOP_SECONDS = 40.0
ANSWER_SECONDS = 30.0

#: Seconds that the expiring value lives: enough to read it before, even on a slow machine.
LIFETIME = 3

CATALOGUE: dict[str, Any] = {
    "purposes": [
        {
            "slug": PURPOSE,
            "title": "Support replies",
            "lawful_basis": "consent",
            "notices": [
                {"version": 1, "locale": "en", "text": "We remember how you like our replies."}
            ],
            "on_withdrawal": "keep",
        }
    ],
    "definitions": [
        {
            "key": KEY,
            "purpose": PURPOSE,
            "schema": {"enum": ["brief", "detailed"]},
            "scopes": ["user"],
            "writers": ["subject", "operator", "agent"],
            "description": "How much detail a reply should hold",
        }
    ],
    "undeclared": {"user": False},
}


class StepFailed(Exception):
    """A step did not come out as it should; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered."""

    status: int
    text: str

    @property
    def body(self) -> Any:
        """The answer's document, or an empty one where there is none."""
        try:
            return json.loads(self.text) if self.text else {}
        except ValueError:
            return {}


class Narrator:
    """Prints the story: colours on a terminal, the same words without them in a pipe."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.steps = 0

    def step(self, title: str) -> None:
        self.steps += 1
        self._print("")
        self._print(f"{self.steps}. {title}", "bold cyan")

    def request(self, who: str, request: str) -> None:
        self._print(f"   {who} > {request}", "bold")

    def answer(self, answer: str, *, is_refusal: bool = False) -> None:
        self._print(f"   < {answer}", "yellow" if is_refusal else "green")

    def why(self, reason: str) -> None:
        self._print(f"     {reason}", "dim")

    def tell(self, line: str) -> None:
        self._print(line)

    def failure(self, lines: str) -> None:
        self._print(lines, "bold red")

    def _print(self, line: str, style: str = "") -> None:
        # Text, not markup: answers hold brackets. Nothing is wrapped or cut in a pipe.
        self.console.print(Text(line, style=style), soft_wrap=True)


@dataclass(slots=True)
class Service:
    """The real server over a data directory of its own, and the commands beside it."""

    directory: Path
    base: Path
    port: int = field(default_factory=lambda: find_free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "service.log"

    @property
    def environment(self) -> dict[str, str]:
        """The caller's environment, without what would lead to another service or database."""
        kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATA_DIR": str(self.directory),
            "HOST": HOST,
            "PORT": str(self.port),
        }

    def start(self) -> None:
        """
        Start the server and wait until it is ready.

        Raises:
            StepFailed: it ended, or is not ready in time.
        """
        with self.log.open("ab") as log:
            # Through the lifeline, which ends it when this process is killed; in a group of its
            # own, so that Ctrl-C stops it through `stop`, in order.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.lifeline", "serve"],
                cwd=self.base,
                env=self.environment | {VARIABLE: str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if self.send("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass  # it does not listen yet
            time.sleep(0.05)
        raise StepFailed("the service gets ready; it does not")

    def stop(self) -> None:
        """Stop the server and wait for its end; nothing happens where none runs."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def has_database_process(self) -> bool:
        """Whether the embedded database runs, or ended without being stopped."""
        return (self.directory / "postgres" / "postmaster.pid").exists()

    def open_shell(self) -> AbstractContextManager[Shell]:
        """Open one process for many commands of `manage.py`."""
        return open_shell(self.base, self.environment, COMMAND_SECONDS)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `manage.py`, whatever its exit code will be."""
        return subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=self.base,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def send(self, method: str, path: str, *, body: Any = None, token: str | None = None) -> Answer:
        """Ask the service; a connection each, since it is restarted in between."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_SECONDS)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body).encode(), headers
            )
            response = connection.getresponse()
            return Answer(response.status, response.read().decode("utf-8", "replace"))
        finally:
            connection.close()

    def tail(self) -> str:
        """Return the end of the server's log, for a failure."""
        if not self.log.exists():
            return ""
        return self.log.read_text("utf-8", "replace")[-2000:].strip()


class Story:
    """The steps in their order. Each needs what those before it left."""

    def __init__(self, service: Service, narrator: Narrator) -> None:
        self.service = service
        self.narrator = narrator
        self.tokens: dict[str, str] = {}

    def tell(self) -> None:
        """
        Set up, run every step, and stop at the first that differs.

        Raises:
            StepFailed: a step did not come out as it should.
        """
        self.set_up()
        self.refuse_without_consent()
        self.give_consent()
        first = self.save_and_read()
        self.keep_apart()
        second = self.replace(first)
        recreated = self.expire_and_recreate(second)
        self.restart(recreated)
        self.refuse_old_revision(second, recreated)
        self.withdraw()
        self.inspect_and_delete()
        self.verify_trail()
        self.find_tampering()

    # The steps

    def set_up(self) -> None:
        self.narrator.step("Set up: an empty database, two tenants, four people, one purpose")
        catalogue = self.service.directory / "catalogue.json"
        catalogue.write_text(json.dumps(CATALOGUE), "utf-8")
        # Held meanwhile: the commands would stop the database with their end.
        database = get_embedded_server(self.service.directory)
        database.acquire()
        try:
            with self.service.open_shell() as shell:
                self.command(shell, "migrate", "--verbosity", "0")
                for tenant in ("acme", "globex"):
                    self.command(shell, "create_tenant", tenant)
                    self.command(
                        shell, "load_catalog", tenant, str(catalogue), shown=catalogue.name
                    )
                for tenant, person, role in (
                    ("acme", "alice", "member"),
                    ("acme", "bob", "member"),
                    ("acme", "ada", "auditor"),
                    ("globex", "eve", "member"),
                ):
                    self.command(shell, "grant_role", tenant, person, role, "--create-user")
                    self.tokens[person] = self.command(shell, "issue_token", person).strip()
            # Before letting go: the service holds the database from here on.
            self.service.start()
        finally:
            database.release()
        self.narrator.request("operator", f"manage.py serve, on {HOST} port {self.service.port}")
        self.narrator.answer("ready")
        self.narrator.why("The real server, over an embedded PostgreSQL of its own.")

    def refuse_without_consent(self) -> None:
        self.narrator.step("Refused without consent")
        self.ask(
            "alice", "PUT", self.preference(), {"value": "brief"},
            status=403, code="consent_required", facts={"purpose": PURPOSE}, show=("purpose",),
            why="The purpose rests on consent, and alice has not given any: nothing is stored.",
        )  # fmt: skip

    def give_consent(self) -> None:
        self.narrator.step("Consent given")
        self.decide(
            "alice", "given",
            why="She names the version of the notice that she was shown; the ledger keeps it.",
        )  # fmt: skip

    def save_and_read(self) -> dict[str, Any]:
        self.narrator.step("Saved, and read")
        saved = self.ask(
            "alice", "PUT", self.preference(), {"value": "brief"},
            status=201, facts={"value": "brief", "scope": "user::alice", "purpose": PURPOSE},
            show=("scope", "value", "revision"),
            why="The same request as before: consent is what was missing.",
        )  # fmt: skip
        self.ask(
            "alice", "GET", self.preference(),
            status=200, facts={"value": "brief", "revision": saved["revision"]},
            show=("value", "revision", "provenance"),
            why="Read back as it was saved, with who said so.",
        )  # fmt: skip
        return saved

    def keep_apart(self) -> None:
        self.narrator.step("Invisible from another tenant, and to another user")
        hidden = self.ask(
            "eve", "GET", self.preference("user::alice"), status=404, code="not_found",
            why="eve has a role in globex alone.",
        )  # fmt: skip
        absent = self.ask(
            "eve", "GET", self.preference("user::alice", tenant="nowhere"),
            status=404, code="not_found",
            why="A tenant that does not exist: the same answer, so there is nothing to learn.",
        )  # fmt: skip
        told = [{k: v for k, v in one.items() if k != "request_id"} for one in (hidden, absent)]
        self.require(told[0] == told[1], "both answers are the same but for the request's id")
        self.ask(
            "bob", "GET", self.preference("user::alice"), status=403, code="permission_denied",
            why="bob is a member of acme too, and a member reaches itself alone.",
        )  # fmt: skip
        self.decide("bob", "given", why="His consent is his own; alice's does not cover him.")
        self.ask(
            "bob", "GET", self.preference(), status=404, code="not_found",
            why="The same key, and nothing of alice's.",
        )  # fmt: skip
        self.ask(
            "bob", "PUT", self.preference(), {"value": "brief"},
            status=201, facts={"scope": "user::bob"}, show=("scope", "value", "revision"),
            why="A record of his own, which the last step comes back to.",
        )  # fmt: skip

    def replace(self, first: dict[str, Any]) -> dict[str, Any]:
        self.narrator.step("Replaced, and a stale replace refused")
        second = self.ask(
            "alice", "PUT", self.preference(),
            {"value": "detailed", "revision": first["revision"]},
            status=200, facts={"value": "detailed", "created_at": first["created_at"]},
            show=("value", "revision"),
            why="She names the revision she has seen, and gets a fresh one.",
        )  # fmt: skip
        self.require(second["revision"] != first["revision"], "the revision is a fresh one")
        self.refuse_stale(
            first["revision"], second["revision"],
            why="A writer who has not seen the newest value: told the current revision instead.",
        )  # fmt: skip
        self.ask(
            "alice", "GET", self.preference(),
            status=200, facts={"value": "detailed", "revision": second["revision"]},
            show=("value", "revision"), why="The refused write has changed nothing.",
        )  # fmt: skip
        return second

    def expire_and_recreate(self, second: dict[str, Any]) -> dict[str, Any]:
        self.narrator.step("Expired at the exact second, and created again over it")
        expiring = self.ask(
            "alice", "PUT", self.preference(),
            {"value": "brief", "revision": second["revision"], "ttl_seconds": LIFETIME},
            status=200, facts={"value": "brief"}, show=("value", "revision", "expires_at"),
            why=f"It lives {LIFETIME} seconds more, by the database's clock.",
        )  # fmt: skip
        self.watch_expiry(datetime.fromisoformat(expiring["expires_at"]).timestamp())
        recreated = self.ask(
            "alice", "PUT", self.preference(), {"value": "detailed"},
            status=201, facts={"value": "detailed", "expires_at": None},
            show=("value", "revision", "created_at"),
            why="Nobody has to purge first: a new record, with a beginning of its own.",
        )  # fmt: skip
        self.require(
            recreated["created_at"] >= expiring["expires_at"], "it begins after the old one's end"
        )
        return recreated

    def watch_expiry(self, deadline: float) -> None:
        """Read around the deadline: no value may be served after it, none be missing before."""
        path = self.preference()
        self.narrator.request("alice", f"GET {path}  (again and again)")
        served: float | None = None
        while True:
            sent = time.time()
            answer = self.service.send("GET", path, token=self.tokens["alice"])
            received = time.time()
            if answer.status == 404:
                self.require(received >= deadline, "no 404 before the deadline", answer)
                break
            self.require(answer.status == 200, "200 before the deadline, 404 after it", answer)
            # Decided between sending and receiving; so one that was sent after is served late.
            self.require(sent < deadline, "no value after the deadline", answer)
            served = sent
            left = deadline - received
            time.sleep(left - 0.2 if left > 0.3 else 0.005)
        if served is None:
            self.fail("a 200 before the deadline", answer)
        self.narrator.answer(f"200, last asked {(deadline - served) * 1000:.0f} ms before the end")
        self.narrator.answer(
            f"404 not_found, first told {(received - deadline) * 1000:.0f} ms after it",
            is_refusal=True,
        )
        self.narrator.why("Every read compares with the clock; purging is housekeeping, later.")

    def restart(self, recreated: dict[str, Any]) -> None:
        self.narrator.step("The service restarted, and the value still there")
        self.narrator.request("operator", "stop the service, start it again")
        self.service.stop()
        self.require(
            not self.service.has_database_process(), "the database stops with its last user"
        )
        self.service.start()
        self.narrator.answer("stopped, its database with it, and ready again")
        self.ask(
            "alice", "GET", self.preference(),
            status=200, facts={"value": "detailed", "revision": recreated["revision"]},
            show=("value", "revision"), why="It was on disk before the write was answered.",
        )  # fmt: skip

    def refuse_old_revision(self, second: dict[str, Any], recreated: dict[str, Any]) -> None:
        self.narrator.step("An old revision refused after the re-creation")
        self.refuse_stale(
            second["revision"], recreated["revision"],
            why="Revisions are never used again: whoever slept through it overwrites nothing.",
        )  # fmt: skip

    def withdraw(self) -> None:
        self.narrator.step("Consent withdrawn: no read and no write")
        self.decide("alice", "withdrawn", why="One call, like giving it. It takes effect at once.")
        for method, body, why in (
            ("GET", None, "The record exists, and may not be used any more."),
            ("PUT", {"value": "brief"}, "The same gate, in the transaction of the write."),
        ):
            self.ask(
                "alice", method, self.preference(), body,
                status=403, code="consent_required", facts={"purpose": PURPOSE},
                show=("purpose",), why=why,
            )  # fmt: skip

    def inspect_and_delete(self) -> None:
        self.narrator.step("Inspection and deletion still possible")
        path = "/api/v1/tenants/acme/subjects/me/data"
        before = self.ask(
            "alice", "GET", path, status=200, facts={"subject": "alice"}, describe=describe_data,
            why="What is held about a person is hers to see, with or without consent.",
        )  # fmt: skip
        self.require(
            [one["value"] for one in before["preferences"]] == ["detailed"], "the record is shown"
        )
        self.require(
            [entry["decision"] for entry in before["consents"][0]["history"]]
            == ["given", "withdrawn"],
            "both decisions are shown",
        )
        self.ask(
            "alice", "DELETE", self.preference(), status=204,
            why="Forgetting never needs consent.",
        )  # fmt: skip
        after = self.ask(
            "alice", "GET", path, status=200, describe=describe_data,
            why="The value is gone; the decisions stay as proof.",
        )  # fmt: skip
        self.require(after["preferences"] == [], "no record is left")

    def verify_trail(self) -> None:
        self.narrator.step("The trail verified")
        trail = self.ask(
            "ada", "GET",
            f"/api/v1/tenants/acme/audit?scope=user::alice&key={KEY}",
            status=200, describe=describe_trail,
            why="Who did what and when, for the auditor: every step above, and no value.",
        )  # fmt: skip
        changes = [
            one["action"].removeprefix("preference.")
            for one in reversed(trail["results"])
            if one["action"].startswith("preference.")
        ]
        expected = ["created", "replaced", "replaced", "expired", "created", "deleted"]
        self.require(changes == expected, f"the changes {expected}, not {changes}")
        text = json.dumps(trail)
        self.require("brief" not in text and "detailed" not in text, "no value in the trail")
        finished = self.verify()
        self.require(finished.returncode == 0, "exit code 0", finished)
        self.narrator.answer(f"exit 0: {finished.stderr.splitlines()[-1]}")
        self.narrator.why("Every hash computed again, every live row compared with its last event.")

    def find_tampering(self) -> None:
        self.narrator.step("A row changed behind the trail's back, and found")
        statement = "UPDATE consentful_preference SET value = %s WHERE scope = %s AND key = %s"
        parameters = ['"detailed"', "user::bob", KEY]
        self.narrator.request("superuser", "SET session_replication_role = replica")
        self.narrator.request("superuser", statement % tuple(f"'{one}'" for one in parameters))
        rows = self.execute_as_superuser(f"{statement} RETURNING id", parameters)
        self.require(len(rows) == 1, "one changed row")
        record = rows[0][0]
        self.narrator.answer(f"preference {record} changed")
        self.narrator.why("With the triggers disabled: no event, no fresh revision.")
        self.ask(
            "bob", "GET", self.preference(), status=200, facts={"value": "detailed"},
            show=("value", "revision"), why="The service cannot tell; bob never said that.",
        )  # fmt: skip
        finished = self.verify()
        self.require(finished.returncode == 1, "exit code 1", finished)
        found = finished.stdout.strip().splitlines()
        self.require(
            len(found) == 1
            and found[0].split("\t")[:2] == ["row_edited", "acme"]
            and found[0].split("\t")[2].startswith(f"preference {record} "),
            f"one finding, row_edited, that names preference {record}",
            finished,
        )
        self.narrator.answer(f"exit 1: {' | '.join(found[0].split('\t'))}", is_refusal=True)
        self.narrator.why(
            "The last event holds a salted digest of the row, and the chain the event."
        )

    # What the steps are made of

    def preference(self, scope: str = "me", *, tenant: str = "acme") -> str:
        return f"/api/v1/tenants/{tenant}/preferences/{scope}/{KEY}"

    def decide(self, person: str, decision: str, *, why: str) -> None:
        body: dict[str, Any] = {"decision": decision}
        if decision == "given":
            body |= {"version": 1, "locale": "en"}
        self.ask(
            person, "PUT", f"/api/v1/tenants/acme/consents/me/{PURPOSE}", body,
            status=200, facts={"purpose": PURPOSE, "status": decision},
            show=("purpose", "status", "version"), why=why,
        )  # fmt: skip

    def refuse_stale(self, stale: str, current: str, *, why: str) -> None:
        refusal = self.ask(
            "alice", "PUT", self.preference(), {"value": "brief", "revision": stale},
            status=409, code="stale_revision", show=("current",), why=why,
        )  # fmt: skip
        self.require(
            (refusal.get("current") or {}).get("revision") == current,
            f"the current revision {current}",
        )

    def verify(self) -> subprocess.CompletedProcess[str]:
        self.narrator.request("operator", "manage.py verify_audit acme")
        return self.service.run("verify_audit", "acme")

    def execute_as_superuser(
        self, statement: str, parameters: Sequence[str]
    ) -> Sequence[tuple[Any, ...]]:
        """Do what only whoever owns the machine can: the socket lies in a private folder."""
        database = get_embedded_server(self.service.directory)
        host = database.acquire()
        try:
            with psycopg.connect(
                host=str(host), port=PORT, user=SUPERUSER, dbname=DATABASE, autocommit=True
            ) as connection:
                connection.execute("SET session_replication_role = replica")
                return connection.execute(statement.encode(), parameters).fetchall()
        finally:
            database.release()

    def command(self, shell: Shell, *command: str, shown: str | None = None) -> str:
        """Run a command that must succeed; `shown` stands for a path in what is printed."""
        words = [shown if shown and Path(word).is_absolute() else word for word in command]
        self.narrator.request("operator", f"manage.py {' '.join(words)}")
        finished = shell.run(*command)
        self.require(finished.returncode == 0, "exit code 0", finished)
        return finished.stdout

    def ask(
        self,
        person: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        status: int,
        why: str,
        code: str | None = None,
        facts: Mapping[str, Any] | None = None,
        show: Sequence[str] = (),
        describe: Callable[[dict[str, Any]], str] | None = None,
    ) -> dict[str, Any]:
        """
        Send one request as a person, print both sides, and return the answer's document.

        Args:
            status, code, facts: what must come back.
            show: the members that are printed.
            describe: prints the document instead.
            why: one line on why the answer is right.

        Raises:
            StepFailed: something else came back.
        """
        request = f"{method} {path}" + ("" if body is None else f"  {json.dumps(body)}")
        self.narrator.request(person, request)
        answer = self.service.send(method, path, body=body, token=self.tokens[person])
        document = answer.body
        expected = {**({} if code is None else {"code": code}), **(facts or {})}
        if (
            answer.status != status
            or not isinstance(document, dict)
            or any(name not in document or document[name] != expected[name] for name in expected)
        ):
            wanted = "".join(f", {name} {json.dumps(value)}" for name, value in expected.items())
            self.fail(f"status {status}{wanted}", answer)
        try:
            parts = [describe(document)] if describe else []
        except (KeyError, IndexError, TypeError):
            self.fail("the document that the contract describes", answer)
        parts += [f"{name} {shorten(document.get(name))}" for name in show]
        line = f"{status} {code or http.HTTPStatus(status).phrase}"
        self.narrator.answer(", ".join([line, *parts]), is_refusal=status >= 400)
        self.narrator.why(why)
        return document

    def require(
        self,
        is_so: bool,
        expected: str,
        got: Answer | subprocess.CompletedProcess[str] | None = None,
    ) -> None:
        if not is_so:
            self.fail(expected, got)

    def fail(
        self, expected: str, got: Answer | subprocess.CompletedProcess[str] | None = None
    ) -> NoReturn:
        message = f"expected: {expected}"
        if isinstance(got, Answer):
            message += f"\ngot: {got.status} {got.text[:2000]}"
        elif got is not None:
            message += f"\ngot: exit code {got.returncode}\n{got.stdout}{got.stderr}".rstrip()
        raise StepFailed(message)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def shorten(value: Any) -> str:
    """Return a member for reading: the revisions of a story are told apart by their beginning."""
    if isinstance(value, dict):
        inner = (f"{name} {shorten(one)}" for name, one in value.items() if one not in (None, {}))
        return f"({', '.join(inner)})"
    is_revision = (
        isinstance(value, str) and len(value) == 32 and not set(value) - set("0123456789abcdef")
    )
    return f"{value[:8]}..." if is_revision else json.dumps(value)


def describe_data(document: dict[str, Any]) -> str:
    records = [f"{one['key']} {json.dumps(one['value'])}" for one in document["preferences"]]
    decisions = [
        f"{one['purpose']}: {', '.join(entry['decision'] for entry in one['history'])}"
        for one in document["consents"]
    ]
    return f"preferences [{', '.join(records)}], consents [{'; '.join(decisions)}]"


def describe_trail(document: dict[str, Any]) -> str:
    told = [f"{one['action']} by {one['actor']}" for one in reversed(document["results"])]
    return "oldest first:" + "".join(f"\n     {line}" for line in told)


def run_demo(*, directory: Path, base: Path, console: Console) -> bool:
    """
    Tell the story over an empty data directory, and stop everything that was started.

    Args:
        directory: belongs to this run alone; the caller removes it.
        base: where `manage.py` lies.

    Returns:
        Whether every step came out as it should.
    """
    narrator = Narrator(console)
    service = Service(directory, base)
    began = time.monotonic()
    is_told = False
    try:
        Story(service, narrator).tell()
        is_told = True
    except StepFailed as failure:
        narrator.failure(f"\nStep {narrator.steps} FAILED\n{failure}")
    except (OSError, psycopg.Error, http.client.HTTPException, subprocess.SubprocessError) as fault:
        narrator.failure(f"\nStep {narrator.steps} FAILED\n{type(fault).__name__}: {fault}")
    finally:
        # A second signal must not cut this short: it would leave the server running.
        ignored = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        former = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
        try:
            service.stop()
            get_embedded_server(directory).release()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
    if is_told and service.has_database_process():
        narrator.failure("\nFAILED\nexpected: the database stops with its last user")
        is_told = False
    if not is_told:
        if tail := service.tail():
            narrator.failure(f"\nThe service's log ends with:\n{tail}")
        return False
    narrator.tell("")
    seconds = time.monotonic() - began
    narrator.tell(f"All {narrator.steps} steps came out as they should, in {seconds:.0f} seconds.")
    return True

"""C117: a marker that a caller sends in every place appears in no log and in no report."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils.log import AdminEmailHandler

from config import embedded
from config.embedded import SUPERUSER, get_embedded_server
from config.environment import read_choice
from config.logs import JSONFormatter
from tenants.observation import FACTS, JOBS, note, readable_route
from tenants.reports import AdminEmailHandlerWithoutValues, WithoutValues
from tests.config.observed import ADMINS
from tests.config.processes import find_processes, run, wait_until
from tests.conftest import run_service
from tests.factories import make_persona, make_tenant
from tests.http.client import CODES

CANARY = "canary7f3"
SENT = {
    "value": CANARY,
    "tags": [CANARY],
    "metadata": {CANARY: CANARY},
    "provenance": {"detail": CANARY, "origin": {"agent": CANARY, "trigger": CANARY}},
}
#: Headers that any client may send along.
HEADERS = {
    "User-Agent": CANARY,
    "Referer": f"https://{CANARY}.example/{CANARY}",
    "Cookie": f"sessionid={CANARY}; csrftoken={CANARY}",
    "X-Forwarded-For": CANARY,
    "Idempotency-Key": CANARY,
    "baggage": f"{CANARY}={CANARY}",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": f"{CANARY}={CANARY}",
}

#: A server that logs all it can: the logins' own settings must keep it from logging values.
LOUD = {
    "log_min_messages": "debug1",
    "log_min_error_statement": "debug1",
    "log_error_verbosity": "verbose",
    "log_statement": "all",
    "log_min_duration_statement": "0",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
}

PREPARE = """
import json
import django
django.setup()
from django.db import connection
from tests.factories import CATALOG, make_persona, make_tenant

CATALOG["undeclared"]["repo"] = False
CATALOG["purposes"].append({"slug": "news", "lawful_basis": "legitimate_interest"})
CATALOG["definitions"].append(
    {"key": "news", "purpose": "news", "scopes": ["user"], "writers": ["subject"]})
CATALOG["definitions"].append(
    {"key": "job", "purpose": "service", "scopes": ["user"], "writers": ["subject"],
     "transitions": {"queued": ["running"]}})
tenant = make_tenant()
names = ("alice", "bob", "agent", "operator", "owner", "auditor")
tokens = {name: make_persona(tenant, name).token for name in names}
with connection.as_owner(), connection.cursor() as cursor:
    cursor.execute(
        "ALTER TABLE consentful_preference ADD CONSTRAINT shown CHECK (key !~ 'broken')")
    cursor.execute('''
        CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.key ~ 'gone' THEN
                PERFORM pg_terminate_backend(pg_backend_pid());
                PERFORM pg_sleep(1);
            END IF;
            RAISE EXCEPTION 'cut off: %', NEW.value USING ERRCODE = 'query_canceled',
                DETAIL = NEW.value, HINT = NEW.value;
        END $$''')
    cursor.execute('''
        CREATE TRIGGER break_off BEFORE INSERT ON consentful_preference FOR EACH ROW
        WHEN (NEW.key ~ 'gone|slow') EXECUTE FUNCTION break_off()''')
print(json.dumps({"tenant": tenant.slug, "tokens": tokens}))
"""


@pytest.fixture(scope="module")
def directory(
    copy_complete: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A data directory whose server was started, and is held, by this process."""
    place = copy_complete(tmp_path_factory.mktemp("logs") / "data")
    server = get_embedded_server(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "SERVER_SETTINGS", embedded.SERVER_SETTINGS | LOUD)
        server.acquire()
    yield place
    server.release()
    wait_until(lambda: not find_processes(place))


@pytest.fixture
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "TEST_DATABASE"):
        monkeypatch.delenv(name, raising=False)


def requests_of(tenant: str, tokens: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests with the code that each is answered with; `-` for success."""
    base = f"/api/v1/tenants/{tenant}"

    def ask(
        method: str, path: str, body: Any = None, *, as_: str | None = "alice", **headers: str
    ) -> dict[str, Any]:
        raw = (
            body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        )
        token = tokens.get(as_ or "", as_)
        known = {"Authorization": f"Bearer {token}"} if token else {}
        if raw is not None:
            known["Content-Type"] = "application/json"
        path = path if path.startswith("/") else f"{base}/{path}"
        return {"method": method, "url": path, "content": raw, "headers": HEADERS | known | headers}

    key = f"preferences/me/{CANARY}"
    unique = {"Idempotency-Key": f"{CANARY}-2"}
    yield "-", ask("PUT", key, SENT)
    yield "-", ask("GET", key)
    other = f"preferences/user%3A%3A{CANARY}/{CANARY}"
    yield "-", ask("PUT", other, SENT, as_="operator")
    yield "-", ask("GET", f"{other}?reason={CANARY}", as_="operator")
    yield "idempotency_mismatch", ask("PUT", key, SENT | {"value": 1})
    yield "already_exists", ask("PUT", key, SENT, **unique)
    yield "stale_revision", ask("PUT", key, SENT | {"revision": "0" * 32}, **unique)
    yield "invalid_revision", ask("PUT", key, SENT | {"revision": CANARY}, **unique)
    yield "invalid_revision", ask("GET", key, **{"If-None-Match": CANARY})
    yield "invalid_ttl", ask("PUT", key, SENT | {"ttl_seconds": CANARY})
    yield "invalid_json", ask("PUT", key, f'{{"value": {CANARY}'.encode())
    yield "invalid_value", ask("PUT", "preferences/me/theme", SENT, **unique)
    yield "validation_error", ask("PUT", key, SENT | {CANARY: CANARY})
    yield "validation_error", ask("GET", f"{key}?{CANARY}={CANARY}")
    step = {"value": {"status": "running", CANARY: CANARY}}
    yield "invalid_transition", ask("PUT", "preferences/me/job", SENT | step, **unique)
    yield "too_large", ask("PUT", key, SENT | {"value": CANARY * 10_000})
    yield "invalid_key", ask("PUT", f"preferences/me/%20{CANARY}", SENT)
    yield "invalid_scope", ask("PUT", f"preferences/{CANARY}%3A%3A/{CANARY}", SENT)
    yield (
        "undeclared_key",
        ask("PUT", f"preferences/repo%3A%3A{CANARY}%2F{CANARY}/{CANARY}", SENT, as_="owner"),
    )
    yield "permission_denied", ask("PUT", f"preferences/user%3A%3A{CANARY}/{CANARY}", SENT)
    yield "consent_required", ask("PUT", "preferences/me/tone", SENT, **unique)
    yield (
        "purpose_not_allowed",
        ask("PUT", f"preferences/user%3A%3A{CANARY}/banner", SENT, as_="agent"),
    )
    yield "not_found", ask("GET", f"preferences/me/{CANARY}-none")
    yield "not_found", ask("GET", f"/api/v1/tenants/{CANARY}/whoami")
    yield "not_found", ask("GET", f"/{CANARY}/{CANARY}")
    yield "method_not_allowed", ask("PATCH", key, SENT)
    yield "not_acceptable", ask("GET", key, Accept=CANARY)
    yield "unsupported_media_type", ask("PUT", key, SENT, **{"Content-Type": CANARY})
    yield "invalid_token", ask("GET", key, as_=f"cst_{CANARY}")
    yield "not_authenticated", ask("GET", key, as_=None)
    yield "duplicate_address", ask("POST", "preferences/batch", {"operations": [
        {"op": "put", "scope": "me", "key": CANARY, **SENT}] * 2})  # fmt: skip
    yield "stale_revision", ask("POST", "preferences/batch", {"operations": [
        {"op": "put", "scope": "me", "key": f"{CANARY}-b", **SENT},
        {"op": "put", "scope": "me", "key": CANARY, "revision": "0" * 32, **SENT}]},
        **{"Idempotency-Key": f"{CANARY}-3"})  # fmt: skip
    yield "-", ask("PUT", f"consents/{CANARY}/support", {
        "decision": "given", "version": 1, "evidence": CANARY}, as_="operator", **unique)  # fmt: skip
    yield "validation_error", ask("PUT", f"consents/{CANARY}/support", {
        "decision": "given", "version": 1, "evidence": CANARY * 400}, as_="operator")  # fmt: skip
    yield "-", ask("GET", f"subjects/{CANARY}/data?reason={CANARY}", as_="operator")
    yield "-", ask("GET", f"audit?key={CANARY}", as_="auditor")
    own = {"Idempotency-Key": f"{CANARY}-6"}
    yield "-", ask("PUT", f"subjects/me/restrictions/{CANARY}-shut", {"evidence": CANARY}, **own)
    yield "restricted", ask("PUT", f"preferences/me/{CANARY}-shut", SENT, **unique)
    own = {"Idempotency-Key": f"{CANARY}-7"}
    yield "-", ask("PUT", "subjects/me/objections/news", {"evidence": CANARY}, **own)
    yield "objected", ask("GET", "preferences/me/news")
    yield "-", ask("GET", "subjects/me/export")
    yield "-", ask("GET", f"subjects/{CANARY}/activity?reason={CANARY}", as_="operator")
    yield "-", ask("POST", f"subjects/{CANARY}/erasures?reason={CANARY}", {}, as_="operator",
        **{"Idempotency-Key": f"{CANARY}-5"})  # fmt: skip
    # Faults: of ours, of a host's page, of the driver, of the database.
    yield "internal_error", ask("PUT", f"broken/{CANARY}", SENT)
    yield "internal_error", ask("POST", f"/page/{CANARY}?{CANARY}={CANARY}", SENT)
    for kind in ("", "-2"):
        more = {"Idempotency-Key": f"{CANARY}{kind}-4"}
        yield "internal_error", ask("PUT", f"preferences/me/broken-{CANARY}{kind}", SENT, **more)
        yield "store_unavailable", ask("PUT", f"preferences/me/slow-{CANARY}{kind}", SENT, **more)
        yield "store_unavailable", ask("PUT", f"preferences/me/gone-{CANARY}{kind}", SENT, **more)


def test_C117_no_value_in_any_log(directory: Path, tmp_path: Path, quiet_environment: None) -> None:
    place = {"DATA_DIR": str(directory)}
    prepared = run("-c", PREPARE, DJANGO_SETTINGS_MODULE="config.settings", **place)
    assert prepared.returncode == 0, prepared.stderr
    known = json.loads(prepared.stdout)
    mails, output = tmp_path / "mails", tmp_path / "output"
    answered: dict[str, str | None] = {}
    with run_service(
        output=output,
        DJANGO_SETTINGS_MODULE="tests.config.observed",
        MAIL_FILE=str(mails),
        LOG_FORMAT="json",
        METRICS_TOKEN="0123456789abcdef",
        OTEL_TRACES_EXPORTER="console",
        OTEL_BSP_SCHEDULE_DELAY="50",  # milliseconds: spans come while it runs, not with its end
        **place,
    ) as (url, _):
        with httpx.Client(base_url=url, timeout=30) as client:
            for code, request in requests_of(known["tenant"], known["tokens"]):
                answer = client.request(**request)
                is_refused = answer.status_code >= 400
                found = answer.json()["code"] if is_refused else "-"
                assert found == code, (request, answer.content)
                answered[answer.headers["X-Request-ID"]] = code
            form = {"username": CANARY, "password": CANARY}
            assert client.post("/admin/login/", data=form, headers=HEADERS).status_code == 403
            client.get(f"/admin/{CANARY}/", headers=HEADERS)
            client.get("/healthz", headers={"Host": CANARY})
            bearer = {"Authorization": "Bearer 0123456789abcdef"}
            metrics = client.get("/metrics", headers=bearer).text
    told = output.read_text("utf-8")
    log = (directory / "postgres.log").read_text("utf-8")
    for name, text in {"output": told, "mail": mails.read_text("utf-8"), "log": log,
                       "metrics": metrics}.items():  # fmt: skip
        assert CANARY not in text.lower(), name

    # What was looked through is what there is to see.
    lines = [json.loads(line) for line in told.splitlines() if line.startswith('{"time"')]
    requests = {one["request_id"]: one for one in lines if one.get("event") == "request"}
    for request_id, code in answered.items():
        assert requests[request_id].get("code", "-") == code
    faults = [one for one in lines if one.get("event") == "fault"]
    assert {one.get("sqlstate") for one in faults} >= {None, "23514", "57014", "57P01"}
    assert set(CODES) - set(answered.values()) == {
        "csrf_failed",  # needs a session, see below
        "failed_dependency",  # stands inside another refusal
        "length_required",  # where a host's server reads no chunked body
        "throttled",  # where a deployment sets a rate
    }
    assert '"name": "consentful.request"' in told
    assert "route page/<words>" in mails.read_text("utf-8")


def test_the_server_of_that_test_logs_what_others_do(directory: Path) -> None:
    host = get_embedded_server(directory).acquire()
    with psycopg.connect(host=str(host), user=SUPERUSER, dbname="postgres") as connection:
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT 'shown-4d1'::integer")
    assert "shown-4d1" in (directory / "postgres.log").read_text("utf-8")


class Everything(logging.Handler):
    """Keeps each record as the plainest handler writes it, tracebacks included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def text(self) -> str:
        return "\n".join(self.format(record) + repr(record.__dict__) for record in self.records)


@pytest.fixture
def heard() -> Iterator[Everything]:
    """What a host that logs all it can gets to hear, without any filter of ours."""
    handler = Everything()
    loggers = [logging.getLogger(), *map(logging.getLogger, settings.LOGGING["loggers"])]
    former = [(one, one.level, one.propagate, one.disabled) for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
        one.propagate = True
        one.disabled = False
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    for one, level, propagate, disabled in former:
        one.setLevel(level)
        one.propagate, one.disabled = propagate, disabled


@pytest.fixture
def mailing(settings: Any) -> Iterator[logging.Logger]:
    """Django's usual logger of faults, which mails them to admins."""
    settings.ADMINS = ADMINS
    # From Django 6.1 on, mail is sent where this says; before, by the backend of test runs.
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
    logger = logging.getLogger("django.request")
    yield logger
    for handler in list(logger.handlers):
        if isinstance(handler, AdminEmailHandler):
            logger.removeHandler(handler)


def test_a_host_that_logs_everything_hears_no_value_of_our_views(
    heard: Everything, mailing: logging.Logger, mailoutbox: list[Any], settings: Any
) -> None:
    settings.ROOT_URLCONF = "tests.config.observed_urls"
    mailing.addHandler(AdminEmailHandler(include_html=True))
    tenant = make_tenant()
    alice = make_persona(tenant, "alice")
    client = Client(raise_request_exception=False)
    codes = set()
    for code, request in requests_of(tenant.slug, {"alice": alice.token}):
        if not request["url"].startswith("/page/"):
            answer = client.generic(
                request["method"], request["url"], request["content"] or b"",
                headers=request["headers"],
            )  # fmt: skip
            codes.add(answer.json()["code"] if answer.status_code >= 400 else code)
            answer.close()  # one that is streamed holds a file
    # As a browser that is signed in, without the token of its form.
    signed_in = Client(enforce_csrf_checks=True, raise_request_exception=False)
    signed_in.force_login(alice.user)
    path = f"/api/v1/tenants/{tenant.slug}/preferences/me/{CANARY}"
    answer = signed_in.put(path, json.dumps(SENT), content_type="application/json")
    codes.add(answer.json()["code"])
    assert {"csrf_failed", "internal_error", "invalid_token", "not_found"} <= codes
    assert len(heard.records) > 30
    assert CANARY not in heard.text.lower()
    assert mailoutbox == []


def break_a_page(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.config.observed_urls"
    answer = Client(raise_request_exception=False).post(
        f"/page/{CANARY}?{CANARY}={CANARY}", {"words": CANARY}, headers=HEADERS
    )
    assert answer.status_code == 500


def test_a_page_of_a_host_is_reported_without_values(
    mailing: logging.Logger, mailoutbox: list[Any], settings: Any
) -> None:
    # The handler decides for itself, whatever the project reports elsewhere.
    settings.DEFAULT_EXCEPTION_REPORTER = "django.views.debug.ExceptionReporter"
    mailing.addHandler(AdminEmailHandlerWithoutValues(include_html=True))
    handler = Everything()
    handler.addFilter(WithoutValues())
    mailing.addHandler(handler)
    try:
        break_a_page(settings)
    finally:
        mailing.removeHandler(handler)
    [mail] = mailoutbox
    told = f"{mail.subject}{mail.body}{mail.alternatives}{handler.text}"
    assert CANARY not in told.lower()
    assert "IntegrityError (SQLSTATE 23514)" in mail.body
    assert "route page/<words>" in mail.body
    assert "broken_page" in mail.body


def test_without_our_reporter_the_same_page_leaks(
    mailing: logging.Logger, mailoutbox: list[Any], settings: Any
) -> None:
    settings.DEFAULT_EXCEPTION_REPORTER = "django.views.debug.ExceptionReporter"
    mailing.addHandler(AdminEmailHandler(include_html=True))
    break_a_page(settings)
    assert CANARY in f"{mailoutbox[0].subject}{mailoutbox[0].body}".lower()


def test_lines_hold_the_facts_of_a_closed_list(heard: Everything) -> None:
    note(JOBS, logging.INFO, "purge", purged=3, tenants=2, code=None)
    [record] = heard.records
    assert record.getMessage() == "purge purged=3 tenants=2"
    assert (record.event, record.purged) == ("purge", 3)  # type: ignore[attr-defined]
    line = json.loads(JSONFormatter().format(record))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("time"))
    assert line == {"level": "INFO", "logger": "consentful.jobs", "event": "purge", "purged": 3,
                    "tenants": 2}  # fmt: skip
    with pytest.raises(ValueError, match="value"):
        note(JOBS, logging.INFO, "purge", value=CANARY)


def test_records_of_others_tell_where_and_not_what() -> None:
    try:
        raise RuntimeError(CANARY)
    except RuntimeError as problem:
        record = logging.getLogger("elsewhere").makeRecord(
            "elsewhere", logging.ERROR, __file__, 7, f"{CANARY} %s", (CANARY,),
            (RuntimeError, problem, problem.__traceback__), extra={"request": CANARY},
        )  # fmt: skip
    told = WithoutValues().filter(record)
    assert isinstance(told, logging.LogRecord)
    text = JSONFormatter().format(told) + logging.Formatter().format(told) + repr(told.__dict__)
    assert CANARY not in text
    assert "test_logs.py:7 error=RuntimeError" in told.getMessage()
    assert CANARY in record.getMessage(), "other handlers see the record as it was"


@pytest.mark.parametrize(
    ("route", "readable"),
    [
        ("api/v1/tenants/<str:tenant>/audit", "api/v1/tenants/<tenant>/audit"),
        (r"api/(?P<tenant>[^/]+)/p/(?P<address>[\s\S]+)\Z", "api/<tenant>/p/<address>"),
        (r"^old/(?P<pk>[0-9]+)/$", "old/<pk>/"),
    ],
)
def test_routes_are_readable(route: str, readable: str) -> None:
    assert readable_route(route) == readable


def test_the_log_format_is_one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="LOG_FORMAT must be text or json"):
        read_choice("LOG_FORMAT", ("text", "json"))


def test_every_fact_is_documented_and_no_other() -> None:
    page = (Path(settings.BASE_DIR) / "docs/reference/metrics.md").read_text("utf-8")
    table = page.partition("## Log lines")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert set(documented) == {"time", "level", "logger", "message", *FACTS}
    assert len(documented) == len(set(documented))

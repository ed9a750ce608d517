"""The dashboard: numbers that are those of the database, drawn as they stand in the tables."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.actors import SYSTEM
from privacy import dashboard
from privacy.jobs import run_erasures
from privacy.models import Erasure
from tenants.models import Tenant
from tenants.times import format_time
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.admin.test_charts import drawn
from tests.admin.test_lists import insert
from tests.factories import make_persona, make_tenant
from tests.http.client import API

PAGE = url(Erasure, "dashboard")


def panels(client: Operator) -> dict[str, tuple[dict[Any, tuple[int, float]], dict[Any, int], str]]:
    """Return each chart's bars and its table's numbers, by title, and all of its text."""
    answer = client.get(PAGE)
    assert answer.status_code == 200
    found = {}
    for text in re.findall(r'<section class="consentful-panel".*?</section>', answer.text, re.S):
        svg = re.search(r"<svg.*?</svg>", text, re.S)[0]
        title = ElementTree.fromstring(svg)[0].text
        side = "width" if "waits" in title else "height"
        heads = re.findall(r'<th scope="col">(.*?)</th>', text)[1:]
        table = {}
        for label, cells in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text, re.S):
            numbers = re.findall(r'<td class="number">(\d+)</td>', cells)
            table |= {
                (unescape(label), head): int(number)
                for head, number in zip(heads, numbers, strict=False)
            }
        found[title] = (drawn(svg, side=side), table, text)
    return found


def this_week(now: Any) -> str:
    return f"{now.date() - timedelta(days=now.weekday()):%Y-%m-%d}"


def test_every_chart_shows_the_numbers_of_its_table(tenant: Tenant, owner: Operator) -> None:
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    bob = API(tenant.slug, make_persona(tenant, "bob").token)
    soon = {"ttl_seconds": 3600}
    for one in (alice, bob):
        assert one.give("me", "support").status == 200
        assert one.write("me", "tone", "warm", **soon).status == 201
    assert alice.withdraw("me", "support").status == 200
    assert alice.read("me", "tone").status == 403
    found = panels(owner)
    assert set(found) == {
        "What waits or fails", "Consents to support", "Expiries ahead", "Refused attempts",
    }  # fmt: skip
    for title, (bars, table, _) in found.items():
        assert {key: number for key, (number, _) in bars.items()} == table, title
        lengths = [length / number for number, length in bars.values() if number]
        assert not lengths or max(lengths) - min(lengths) < 0.02, title
        assert all(length == 0 for number, length in bars.values() if number == 0), title
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        now = dashboard.ask_waiting(tenant.pk)[0]
    week = this_week(now)
    consents = found["Consents to support"][1]
    assert len(consents) == 3 * dashboard.WEEKS
    assert (consents[week, "given"], consents[week, "withdrawn"]) == (2, 1)
    assert sum(consents.values()) == 3
    assert sum(found["Expiries ahead"][1].values()) == 2
    assert found["Refused attempts"][1][f"{now:%Y-%m-%d}", "refused"] == 1


def test_what_ends_ahead_is_counted_in_its_week(
    tenant: Tenant, alice: API, owner: Operator, frozen: Any
) -> None:
    ends = frozen.now + timedelta(days=21)
    assert alice.give("me", "support", expires_at=format_time(ends)).status == 200
    assert alice.write("me", "tone", "warm", expires_at=format_time(ends)).status == 201
    far = frozen.now + timedelta(days=300)
    assert alice.write("me", "reply_style", "brief", expires_at=format_time(far)).status == 201
    ahead = panels(owner)["Expiries ahead"][1]
    week = this_week(ends)
    assert (ahead[week, "records"], ahead[week, "consents"]) == (1, 1)
    assert sum(ahead.values()) == 2


def test_what_waits_says_for_how_long(
    tenant: Tenant, alice: API, operator: Operator, frozen: Any, tmp_path: Path, settings: Any
) -> None:
    settings.CONSENTFUL_PERSONAL_DATA = ["tests.privacy.hosts.Index"]
    settings.HOST_FOLDER = tmp_path
    (tmp_path / "broken").touch()
    assert alice.write("me", "theme", "dark", ttl_seconds=60).status == 201
    make_persona(tenant, "bob")
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    why = {"reason": "asked"}
    assert staff.post("subjects/bob/erasures", {}, query=why).json["status"] == "pending"
    run_erasures()
    frozen.move(60 + 2 * 3600 + 300)
    _, table, text = panels(operator)["What waits or fails"]
    assert table["records past their deadline", "now"] == 1
    assert table["unfinished erasures", "now"] == table["holders that failed", "now"] == 1
    assert table["events without a seal", "now"] > 3
    assert "<td>2 h 5 min</td>" in text
    assert "<td>2 h 6 min</td>" in text
    # Left for nobody to go on with.
    (tmp_path / "broken").unlink()
    frozen.move(7 * 3600)
    run_erasures()
    assert panels(operator)["What waits or fails"][1]["holders that failed", "now"] == 0


def test_a_chart_is_for_whoever_may_open_the_list(
    tenant: Tenant, alice: API, operator: Operator
) -> None:
    assert alice.give("me", "support").status == 200
    assert set(panels(operator)) == {
        "What waits or fails", "Consents to support", "Expiries ahead",
    }  # fmt: skip
    operator.user.user_permissions.set(
        operator.user.user_permissions.filter(codename="view_erasure")
    )
    assert set(panels(operator)) == {"What waits or fails"}
    operator.user.user_permissions.clear()
    assert operator.get(PAGE).status_code == 403


def test_nothing_of_another_tenant_is_counted(tenant: Tenant, alice: API) -> None:
    assert alice.give("me", "support").status == 200
    assert alice.read("user::bob", "tone").status == 403
    found = panels(Operator(make_tenant({}), is_superuser=True))
    assert not [title for title in found if title.startswith("Consents")]
    for title in ("Expiries ahead", "Refused attempts"):
        assert sum(found[title][1].values()) == 0


def test_it_looks_at_a_bounded_number_and_says_so(
    tenant: Tenant, alice: API, owner: Operator, frozen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "MOST", 3)
    monkeypatch.setattr(dashboard, "MANY", 2)
    start = frozen.now
    for back in (28, 21, 14, 0):
        frozen.set(start - timedelta(days=back))
        assert alice.give("me", "support").status in (200, 201)
        assert alice.withdraw("me", "support").status == 200
        assert alice.read("me", "tone").status == 403
    insert(tenant, "project::atlas", 5, expires_at="now() + interval '20 days'")
    with CaptureQueriesContext(connection) as captured:
        found = panels(owner)
    asked = [one["sql"] for one in captured if "count(*)" in one["sql"]]
    assert len(asked) == 4
    for statement in asked:
        assert statement.count("LIMIT 3") + statement.count("LIMIT 2") >= 1, statement
    _, consents, text = found["Consents to support"]
    assert "The newest 3 decisions are looked at" in text
    assert sum(consents.values()) == 2  # whole weeks alone, so that none is shown too small
    assert len(consents) < 3 * dashboard.WEEKS
    assert "The next 3 of a kind are looked at" in found["Expiries ahead"][2]
    assert "Counting stops at 2 of a kind" in found["What waits or fails"][2]
    # The third newest refusal is older than the chart: nothing of it is left out.
    assert "are looked at" not in found["Refused attempts"][2]
    for _ in range(4):
        assert alice.read("me", "tone").status == 403
    _, refused, text = panels(owner)["Refused attempts"]
    assert list(refused.values()) == [3]
    assert "The newest 3 refusals are looked at" in text


def test_an_index_answers_each_question(tenant: Tenant) -> None:
    """On a full table no question may read what it does not count."""
    values = {
        "tenant": tenant.pk, "many": dashboard.MANY, "most": dashboard.MOST,
        "before": "2001-01-01", "now": "2001-01-01", "until": "2990-01-01",
    }  # fmt: skip
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        for question, indexes in (
            (dashboard.CONSENTS, ["consentful_entry_pages"]),
            (dashboard.REFUSALS, ["consentful_event_denied"]),
            (dashboard.EXPIRIES, ["consentful_preference_expiry", "consentful_state_expiry"]),
            (dashboard.WAITING, ["consentful_preference_expiry", "consentful_withdrawal_due"]),
        ):  # fmt: skip
            cursor.execute(f"EXPLAIN {question}", values)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert [one for one in indexes if one not in plan] == [], plan

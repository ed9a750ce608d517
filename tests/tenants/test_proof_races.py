"""Writers, sealers, retention, verification, exports and followers of one trail, all at once."""

import io
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection

from audit.actors import SYSTEM
from audit.exceptions import ProofRefused
from audit.exports import verify_export
from audit.findings import Tally
from audit.sealing import seal
from audit.signing import trusted_keys
from audit.stores import FolderStore
from audit.verification import verify
from preferences.models import Preference
from tenants.exceptions import ValidationError
from tenants.models import Tenant
from tenants.proof import export_trail, trim_trail, write_checkpoint
from tenants.trail import list_changes
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR
from tests.tenants.test_proof import key, seal_all, tenant, write  # noqa: F401  fixtures

SECONDS = 8


def test_nobody_finds_what_is_not_there(tenant: Tenant, tmp_path: Any) -> None:  # noqa: F811
    kept = FolderStore(tmp_path / "checkpoints")
    deadline = time.monotonic() + SECONDS
    faults: list[BaseException] = []
    done: dict[str, int] = {}
    followed: list[int] = []

    def repeat(name: str, work: Callable[[int], object]) -> None:
        try:
            while time.monotonic() < deadline and not faults:
                work(done.setdefault(name, 0))
                done[name] += 1
        except BaseException as fault:  # noqa: BLE001  shown below
            faults.append(fault)
        finally:
            connection.close()

    def change(name: str, number: int) -> None:
        write(tenant, f"{name}-{number}")
        with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
            Preference.objects.filter(tenant_id=tenant.pk, key=f"{name}-{number}").update(
                tags=["a"]
            )
            Preference.objects.filter(tenant_id=tenant.pk, key=f"{name}-{number - 3}").delete()

    def prove(number: int) -> None:
        with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
            findings = verify(tenant.pk, using="default")
        assert findings == []

    def export(number: int) -> None:
        pieces = []
        try:
            for piece in export_trail(tenant.pk, "x", after=0, actor=ACTOR):
                pieces.append(piece)
                time.sleep(0.01)
        except ProofRefused:
            pass  # retention was faster
        text = "".join(pieces)
        try:
            findings = verify_export(io.StringIO(text), trusted_keys(), tally=Tally())
        except ProofRefused:
            assert not text.endswith("}\n")
        else:
            assert findings == []
            assert text.endswith("}\n")

    def follow(number: int) -> None:
        after = followed[-1] if followed else None
        try:
            with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
                changes = list_changes(tenant_id=tenant.pk, after=after, most=20)
        except ValidationError:
            followed.clear()
            return
        places = [one.sequence for one in changes]
        if places:
            first = places[0] if after is None else after + 1
            assert places == list(range(first, first + len(places)))
            followed.extend(places)

    works = {
        "writer a": lambda number: change("a", number),
        "writer b": lambda number: change("b", number),
        "sealer": lambda number: seal(tenant.pk, using="default"),
        "retention": lambda number: trim_trail(
            tenant.pk, "x", keep=timedelta(seconds=1), actor=SYSTEM, kept=kept
        ),
        "checkpoints": lambda number: write_checkpoint(tenant.pk, "x", kept=kept),
        "verification": prove,
        "export": export,
        "follower": follow,
    }  # fmt: skip
    threads = [threading.Thread(target=repeat, args=one) for one in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert all(done.get(name) for name in works), done
    seal_all(tenant)
    prove(0)

"""
Proof that a tenant's trail is whole, and that every live row is the one its last event speaks of.

Must stay generic: what another app keeps beside the trail, it compares itself and appends its
check to `extra_checks`. Everything is read under the row-level security of a tenant that the
caller has announced, in keyset batches, and each comparison of two tables is one statement: the
service goes on writing meanwhile, and two statements would see two states.
"""

from collections.abc import Callable, Iterable, Sequence

from audit.chains import check_chain, check_copies, check_unsealed, last_cut
from audit.checkpoints import Checkpoint, check_checkpoints, check_cut, covered_events
from audit.findings import Finding, Tally
from audit.guards import captured_models, check_capture
from audit.retention import stay_uncut
from audit.rows import check_absent_rows, check_links, check_rows, in_utc
from audit.signing import Keys, trusted_keys

type Check = Callable[[int, str], Iterable[Finding]]

#: Checks of other apps, each called with a tenant's id and a connection's alias.
extra_checks: list[Check] = []


def verify(
    tenant_id: int,
    *,
    using: str,
    tally: Tally | None = None,
    checkpoints: Sequence[Checkpoint] = (),
    keys: Keys | None = None,
) -> list[Finding]:
    """
    Compare one tenant's chain, events and live rows; return what does not fit.

    The tenant must have been announced to the transaction, and its events be sealed before.

    Args:
        tenant_id: 0 stands for the installation: rows that no tenant owns.
        using: alias of the connection whose transaction announced the tenant.
        tally: counts what was seen, and what waits.
        checkpoints: what was signed about this chain and kept elsewhere.
        keys: whose signatures are believed; this installation's by default.

    Raises:
        ProofRefused: a configured key is none.
    """
    tally = tally or Tally()
    stay_uncut(tenant_id, using=using)
    tally.checkpoints += len(checkpoints)
    if keys is None:
        keys = trusted_keys() if last_cut(tenant_id, using) else {}
    covered = covered_events(tenant_id, keys, using=using)
    findings = [
        *check_cut(tenant_id, keys, using=using),
        *check_checkpoints(tenant_id, checkpoints, using=using),
        *check_chain(tenant_id, using, tally),
        *check_unsealed(tenant_id, using, tally),
        *check_copies(tenant_id, using),
    ]
    with in_utc(using):
        for model in captured_models():
            findings += check_links(model, tenant_id, using, covered=covered)
            findings += check_rows(model, tenant_id, using, tally)
            findings += check_absent_rows(model, tenant_id, using)
    findings += check_capture(using)
    for check in extra_checks:
        findings += check(tenant_id, using)
    return list(dict.fromkeys(findings))

"""What was signed and kept elsewhere: a chain that is no longer the same is found by it."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.management import CommandError, call_command

from audit.checkpoints import check_checkpoints, read_checkpoint, read_log, sign_checkpoint
from audit.exceptions import ProofRefused, SigningKeyMissing
from audit.findings import Finding
from audit.models import Event, Seal
from audit.sealing import GENESIS, chain_hash, content
from audit.signing import as_jwk_set, as_pem, read_keys, read_signed, sign, thumbprint, trusted_keys
from audit.stores import CommandStore, FolderStore, StoreFailed
from preferences.models import Preference
from tenants.proof import INTERVAL, write_checkpoint, write_due_checkpoints
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World, create_preference


def new_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def key(settings: Any) -> str:
    settings.CONSENTFUL_SIGNING_KEY = text = new_key()
    settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = None
    return text


@pytest.fixture
def kept(tmp_path: Path, key: str) -> FolderStore:
    return FolderStore(tmp_path / "check points")


def write(world: World, kept: Any) -> Any:
    world.settle()
    return write_checkpoint(world.id, world.tenant.slug, kept=kept)


def grow(world: World, *keys: str) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        for name in keys:
            create_preference(world.tenant, name)


def compare(world: World, kept: Any) -> list[Finding]:
    log = read_log(kept.read(world.id), trusted_keys())
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        return list(check_checkpoints(world.id, log, using="default"))


def codes(world: World, kept: Any) -> list[str]:
    return [finding.code for finding in compare(world, kept)]


def test_a_log_grows_with_its_chain_and_each_line_follows_the_one_before(
    world: World, kept: FolderStore
) -> None:
    first = write(world, kept)
    assert write(world, kept) is None  # nothing happened since
    grow(world, "a", "b")
    second = write(world, kept)
    assert (first.sequence, first.count, first.previous) == (6, 6, None)
    assert (second.sequence, second.previous) == (8, first.digest)
    assert read_log(kept.read(world.id), trusted_keys()) == [first, second]
    assert compare(world, kept) == []
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        assert Seal.objects.get(tenant_id=world.id, sequence=8).hash == second.hash


def test_any_jose_library_reads_a_checkpoint(world: World, kept: FolderStore) -> None:
    import jwt

    checkpoint = write(world, kept)
    keys = jwt.PyJWKSet.from_dict(as_jwk_set(trusted_keys().values()))
    payload = jwt.decode(checkpoint.jws, keys[checkpoint.key].key, algorithms=["EdDSA"])
    assert payload["tenant"] == world.tenant.slug
    assert payload["hash"] == checkpoint.hash


def test_a_chain_without_links_has_no_checkpoint(key: str) -> None:
    with unit_of_work(tenant_id=10**12, actor=ACTOR):
        assert sign_checkpoint(10**12, "nobody", using="default") is None


def test_a_tail_that_was_cut_with_its_head_is_found(
    world: World, kept: FolderStore, attack: Any
) -> None:
    """Nothing in the database says any more that the events were there."""
    grow(world, "a")
    write(world, kept)
    event = world.events()[-1]
    attack("DELETE FROM consentful_preference WHERE tenant_id = %s AND key = 'a'", world.id)
    attack("DELETE FROM consentful_audit_seal WHERE event_id = %s", event)
    attack("DELETE FROM consentful_audit_event WHERE id = %s", event)
    attack(
        "UPDATE consentful_audit_head SET sequence = 6, hash = (SELECT hash FROM"
        " consentful_audit_seal WHERE tenant_id = %s AND sequence = 6) WHERE tenant_id = %s",
        world.id, world.id,
    )  # fmt: skip
    assert world.verify() == []
    assert codes(world, kept) == ["chain_rolled_back"]
    with pytest.raises(ProofRefused, match="cut off"):
        write(world, kept)
    assert len(kept.read(world.id)) == 1


def rewrite_chain(world: World, attack: Any) -> None:
    """Compute every link again, as whoever owns the database can."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        links = list(Seal.objects.filter(tenant_id=world.id).order_by("sequence"))
        events = Event.objects.in_bulk([link.event_id for link in links])
    previous = GENESIS
    for link in links:
        attack(
            "UPDATE consentful_audit_seal SET previous = %s WHERE event_id = %s",
            f"-{link.pk}",
            link.pk,
        )
    for link in links:
        text = chain_hash(link.sequence, previous, content(events[link.event_id]))
        attack(
            "UPDATE consentful_audit_seal SET previous = %s, hash = %s WHERE event_id = %s",
            previous, text, link.pk,
        )  # fmt: skip
        previous = text
    attack("UPDATE consentful_audit_head SET hash = %s WHERE tenant_id = %s", previous, world.id)


def test_a_trail_that_was_replaced_whole_is_found(
    world: World, kept: FolderStore, attack: Any
) -> None:
    write(world, kept)
    grow(world, "later")
    world.seal()
    attack(
        "UPDATE consentful_audit_event SET purpose = 'x' WHERE id = %s", world.events("subject")[0]
    )
    rewrite_chain(world, attack)
    assert world.verify() == []
    assert codes(world, kept) == ["chain_replaced"]
    with pytest.raises(ProofRefused, match="replaced"):
        write(world, kept)


def test_rows_of_a_backup_put_back_are_found(
    world: World, kept: FolderStore, attack: Any, superuser: Any
) -> None:
    """Rows, events, links and head of a tenant, all as they were at the time of the backup."""
    tables = {
        "consentful_preference": "tenant_id",
        "consentful_audit_event": "tenant_id",
        "consentful_audit_seal": "tenant_id",
        "consentful_audit_head": "tenant_id",
    }
    for table, column in tables.items():
        superuser.execute(
            f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WHERE {column} = {world.id}"
        )
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).delete()
    write(world, kept)
    for table, column in tables.items():
        attack(f"DELETE FROM {table} WHERE {column} = %s", world.id)
        attack(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{table}")
    assert world.verify() == []
    assert codes(world, kept) == ["chain_rolled_back"]
    # Going on does not hide it: another event stands in the place that was signed.
    grow(world, "next")
    world.seal()
    assert codes(world, kept) == ["chain_replaced"]


# The log itself ----------------------------------------------------------------------------------


@pytest.fixture
def log(world: World, kept: FolderStore) -> list[str]:
    for name in "abc":
        grow(world, name)
        write(world, kept)
    return kept.read(world.id)


def test_a_log_that_was_changed_is_refused(log: list[str], world: World) -> None:
    keys = trusted_keys()
    assert len(read_log(log, keys)) == 3
    for changed, words in (
        (log[1:], "missing"),
        ([log[0], log[2]], "does not follow"),
        ([log[1], log[0], log[2]], "missing"),
        ([log[0], log[0], log[1]], "does not follow"),
        ([log[0][:-4] + "AAAA", *log[1:]], "altered"),
        ([log[0], "nonsense"], "no signed text"),
        ([log[0], "a.b.c"], "no signed text"),
    ):
        with pytest.raises(ProofRefused, match=words):
            read_log(changed, keys)


def test_a_checkpoint_of_another_tenant_is_no_link_of_this_log(
    world: World, kept: FolderStore, log: list[str]
) -> None:
    payload, _ = read_signed(log[-1], kind="consentful-checkpoint", keys=trusted_keys())
    last = read_checkpoint(log[-1], trusted_keys())
    _, foreign = sign(
        {**payload, "tenant_id": 1, "previous": last.digest}, kind="consentful-checkpoint"
    )
    with pytest.raises(ProofRefused, match="another tenant"):
        read_log([*log, foreign], trusted_keys())


def test_something_else_that_was_signed_is_no_checkpoint(key: str) -> None:
    _, text = sign({"a": 1}, kind="consentful-receipt")
    with pytest.raises(ProofRefused, match="no consentful-checkpoint"):
        read_checkpoint(text, trusted_keys())


def test_a_signature_without_algorithm_is_refused(key: str) -> None:
    import jwt

    for algorithm, secret in (("none", None), ("HS256", as_pem(*trusted_keys().values()))):
        try:
            forged = jwt.encode(
                {"tenant_id": 1}, secret, algorithm=algorithm,
                headers={"typ": "consentful-checkpoint", "kid": next(iter(trusted_keys()))},
            )  # fmt: skip
        except jwt.exceptions.InvalidKeyError:
            continue  # the library itself refuses to sign with a public key as a secret
        with pytest.raises(ProofRefused):
            read_checkpoint(forged, trusted_keys())


# Keys --------------------------------------------------------------------------------------------


def test_a_former_key_is_believed_and_cannot_go_on(
    world: World, kept: FolderStore, key: str, settings: Any
) -> None:
    write(world, kept)
    former = next(iter(trusted_keys().values()))
    settings.CONSENTFUL_SIGNING_KEY = present = new_key()
    with pytest.raises(ProofRefused, match="not among the keys"):
        compare(world, kept)
    settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = as_pem(former)
    grow(world, "a")
    second = write(world, kept)
    assert second.key != thumbprint(former)
    assert compare(world, kept) == []
    # Whoever has the former key could otherwise take over again.
    settings.CONSENTFUL_SIGNING_KEY, settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = key, present
    grow(world, "b")
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        late = sign_checkpoint(world.id, "x", using="default", previous=second)
    assert late is not None
    kept.append(world.id, late.jws)
    with pytest.raises(ProofRefused, match="had replaced"):
        compare(world, kept)


def test_a_new_key_takes_over_a_log_whose_chain_stands_still(
    world: World, kept: FolderStore, settings: Any
) -> None:
    first = write(world, kept)
    settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = settings.CONSENTFUL_SIGNING_KEY
    settings.CONSENTFUL_SIGNING_KEY = new_key()
    second = write(world, kept)
    assert (second.sequence, second.previous) == (first.sequence, first.digest)
    assert second.key != first.key
    assert write(world, kept) is None
    # The former key, stolen, has come too late.
    fallback, present = settings.CONSENTFUL_SIGNING_KEY_FALLBACKS, settings.CONSENTFUL_SIGNING_KEY
    settings.CONSENTFUL_SIGNING_KEY, settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = fallback, present
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        late = sign_checkpoint(world.id, "x", using="default", previous=second)
    assert late is not None
    kept.append(world.id, late.jws)
    with pytest.raises(ProofRefused, match="had replaced"):
        compare(world, kept)


def test_keys_are_read_in_every_form_that_is_documented(key: str, settings: Any) -> None:
    (name,) = trusted_keys()
    public = trusted_keys()[name]
    for text in (
        key, key.replace("\n", "\\n"), as_pem(public), json.dumps(as_jwk_set([public])),
        as_pem(public) + new_key(),
    ):  # fmt: skip
        assert name in read_keys(text)
    settings.CONSENTFUL_SIGNING_KEY = lambda: key
    assert list(trusted_keys()) == [name]


@pytest.mark.parametrize(
    "text", ["", "secret", "{}", '{"keys": [{"kty": "OKP"}]}', "-----BEGIN X-----"]
)
def test_what_is_no_key_is_refused_by_name(text: str) -> None:
    with pytest.raises(ProofRefused):
        read_keys(text)


def test_a_key_of_another_kind_is_refused(settings: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    other = generate_private_key(SECP256R1())
    settings.CONSENTFUL_SIGNING_KEY = other.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ).decode()
    with pytest.raises(ProofRefused, match="must be Ed25519"):
        sign({}, kind="x")


def test_without_a_key_nothing_is_signed(world: World, settings: Any, tmp_path: Path) -> None:
    settings.CONSENTFUL_SIGNING_KEY = None
    with pytest.raises(SigningKeyMissing, match="CONSENTFUL_SIGNING_KEY"):
        write_checkpoint(world.id, "x", kept=FolderStore(tmp_path))
    assert list(tmp_path.iterdir()) == []


# Stores ------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_short_does_not_stop_the_log(world: World, kept: FolderStore) -> None:
    write(world, kept)
    (file,) = kept.folder.iterdir()
    with file.open("a") as torn:
        torn.write("eyJhbGciOiJF")
    assert compare(world, kept) == []
    grow(world, "a")
    write(world, kept)
    assert len(read_log(kept.read(world.id), trusted_keys())) == 2


def test_a_command_of_the_hosts_keeps_them(world: World, key: str, tmp_path: Path) -> None:
    program = tmp_path / "keep.py"
    program.write_text(
        "import pathlib, sys\n"
        "verb, tenant = sys.argv[1:]\n"
        f"log = pathlib.Path({str(tmp_path)!r}) / tenant\n"
        "if verb == 'read': print(log.read_text() if log.exists() else '', end='')\n"
        "else: log.open('a').write(sys.stdin.read())\n"
    )
    kept = CommandStore([sys.executable, str(program)])
    write(world, kept)
    grow(world, "a")
    write(world, kept)
    assert compare(world, kept) == []
    assert len(kept.read(world.id)) == 2


def test_a_command_that_fails_is_named_with_what_it_said(world: World, key: str) -> None:
    kept = CommandStore([sys.executable, "-c", "import sys; sys.exit('the bucket is gone')"])
    with pytest.raises(StoreFailed, match="the bucket is gone"):
        write(world, kept)
    with pytest.raises(StoreFailed):
        CommandStore(["/nowhere/at-all"]).read(1)


def test_housekeeping_writes_them_once_an_hour(world: World, kept: FolderStore) -> None:
    trails = {world.id: world.tenant.slug}
    world.settle()
    assert write_due_checkpoints(trails, kept=kept) == []
    grow(world, "a")
    world.settle()
    assert write_due_checkpoints(trails, kept=kept) == []
    assert len(kept.read(world.id)) == 1
    assert write_due_checkpoints(trails, kept=kept, interval=INTERVAL * 0) == []
    assert len(kept.read(world.id)) == 2


def test_one_trail_that_is_refused_keeps_no_other_waiting(world: World, kept: FolderStore) -> None:
    kept.append(0, "nonsense")
    world.settle()
    trails = {0: "the installation", world.id: world.tenant.slug}
    (refused,) = write_due_checkpoints(trails, kept=kept)
    assert refused.startswith("the installation: Checkpoint 1 of the log")
    assert len(kept.read(world.id)) == 1


# Commands ----------------------------------------------------------------------------------------


def run(name: str, *arguments: object, **options: object) -> str:
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_the_command_prints_what_it_kept(world: World, kept: FolderStore, settings: Any) -> None:
    world.settle()
    printed = run("checkpoint_audit", world.tenant.slug, "--folder", kept.folder)
    (line,) = read_log(kept.read(world.id), trusted_keys())
    assert printed == f"{world.tenant.slug}\t{line.sequence}\t{line.hash}\n"
    with pytest.raises(CommandError, match="CONSENTFUL_CHECKPOINTS"):
        run("checkpoint_audit", world.tenant.slug)
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    grow(world, "a")
    world.settle()
    assert run("checkpoint_audit", world.tenant.slug)
    assert run("checkpoint_audit", world.tenant.slug) == ""


def test_printed_lines_go_on_from_those_before(world: World, key: str, tmp_path: Path) -> None:
    world.settle()
    lines = tmp_path / "lines"
    lines.write_text(run("checkpoint_audit", world.tenant.slug, "--print"))
    grow(world, "a")
    world.settle()
    more = run("checkpoint_audit", world.tenant.slug, "--print", "--after", lines)
    lines.write_text(lines.read_text() + more)
    assert len(read_log(lines.read_text().split(), trusted_keys())) == 2
    run("verify_audit", world.tenant.slug, "--checkpoints", lines)


def test_verification_compares_with_what_is_kept(
    world: World, kept: FolderStore, attack: Any, settings: Any
) -> None:
    write(world, kept)
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    run("verify_audit", world.tenant.slug)
    attack(
        "UPDATE consentful_audit_event SET purpose = 'x' WHERE id = %s", world.events("subject")[0]
    )
    rewrite_chain(world, attack)
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 findings"):
        call_command("verify_audit", world.tenant.slug, stdout=out, stderr=io.StringIO())
    assert out.getvalue().startswith("chain_replaced\t")


def test_a_forged_log_is_a_finding(world: World, kept: FolderStore, settings: Any) -> None:
    write(world, kept)
    settings.CONSENTFUL_CHECKPOINTS = str(kept.folder)
    settings.CONSENTFUL_SIGNING_KEY = new_key()
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("verify_audit", world.tenant.slug, stdout=out, stderr=io.StringIO())
    assert out.getvalue().startswith("checkpoint_forged\t")


def test_two_writers_at_once_make_one_log(
    world: World, kept: FolderStore, database: str, key: str
) -> None:
    """Real processes: each would otherwise follow the same line."""
    import os

    world.settle()
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_DATABASE": database,
    }
    code = (
        "import django, sys; django.setup()\n"
        "from django.conf import settings\n"
        "settings.CONSENTFUL_SIGNING_KEY = sys.argv[1]\n"
        "from django.core.management import call_command\n"
        "call_command('checkpoint_audit', sys.argv[2], folder=__import__('pathlib').Path(sys.argv[3]))\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, key, world.tenant.slug, str(kept.folder)],
            env=environment, cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]  # fmt: skip
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(read_log(kept.read(world.id), trusted_keys())) == 1

"""The standalone service's key: made once, kept for this account alone, and rotated."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from audit.signing import read_keys, read_private_key, thumbprint
from config.signing import find_former_keys, find_signing_key, rotate_signing_key

ROOT = Path(__file__).resolve().parents[2]


def name_of(text: str) -> str:
    return thumbprint(read_private_key(text).public_key())


def test_the_key_is_made_on_first_use_and_readable_for_this_account_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data dir" / "keys"
    text = find_signing_key(folder)
    assert find_signing_key(folder) == text
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_several_processes_at_once_make_one_key(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(find_signing_key(tmp_path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["signing.pem"]


def test_a_former_key_is_kept_as_its_public_half(tmp_path: Path) -> None:
    first = name_of(find_signing_key(tmp_path))
    former, present = rotate_signing_key(tmp_path)
    assert (former, present) == (first, name_of(find_signing_key(tmp_path)))
    _, newest = rotate_signing_key(tmp_path)
    assert set(read_keys(find_former_keys(tmp_path))) == {first, present, newest}
    for file in tmp_path.glob("former-*.pem"):
        assert "PRIVATE" not in file.read_text()


def manage(data: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "DATABASE_OWNER_URL")
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=clean
        | {"DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "config.settings"}
        | environment,
    )  # fmt: skip


def keys_of(data: Path, **environment: str) -> list[str]:
    ran = manage(data, "signing_keys", **environment)
    assert ran.returncode == 0, ran.stderr
    return [key["kid"] for key in json.loads(ran.stdout)["keys"]]


def test_the_commands_rotate_and_name_the_keys(tmp_path: Path) -> None:
    """No database is started for them."""
    (first,) = keys_of(tmp_path)
    ran = manage(tmp_path, "rotate_signing_key")
    assert ran.returncode == 0, ran.stderr
    assert keys_of(tmp_path) == [ran.stdout.strip(), first]
    assert not (tmp_path / "postgres").exists()


def test_the_environment_names_the_key(tmp_path: Path) -> None:
    (kept,) = keys_of(tmp_path)
    text = find_signing_key(tmp_path / "other")
    escaped = text.replace("\n", "\\n")
    assert keys_of(tmp_path, SIGNING_KEY=escaped) == [name_of(text), kept]
    former = find_signing_key(tmp_path / "former")
    assert keys_of(tmp_path, SIGNING_KEY=text, SIGNING_KEY_FALLBACKS=former) == [
        name_of(text),
        name_of(former),
    ]
    ran = manage(tmp_path, "rotate_signing_key", SIGNING_KEY=text)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "SIGNING_KEY_FALLBACKS" in ran.stderr


@pytest.mark.parametrize(
    "text", ["secret", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"]
)
def test_a_key_that_is_none_is_refused_in_one_line_without_showing_it(
    tmp_path: Path, text: str
) -> None:
    ran = manage(tmp_path, "signing_keys", SIGNING_KEY=text)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    assert "secret" not in ran.stderr

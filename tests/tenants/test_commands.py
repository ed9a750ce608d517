"""What all commands share, seen from a shell: one line and an exit status."""

from pathlib import Path

from tests.config.processes import run


def test_a_database_without_tables_is_told_in_one_line(tmp_path: Path) -> None:
    refused = run("manage.py", "create_tenant", "acme", DATA_DIR=str(tmp_path))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        "CommandError: The database is not migrated: run `manage.py migrate`.\n"
    )

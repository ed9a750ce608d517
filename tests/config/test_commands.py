"""Several commands in one process: each answers as it would alone, and the next one is not touched."""

from pathlib import Path

import pytest

from config.commands import open_shell
from tests.config.processes import find_processes, make_environment
from tests.conftest import ROOT


def test_each_has_its_own_exit_code_output_and_errors(tmp_path: Path) -> None:
    environment = make_environment(DATA_DIR=str(tmp_path))
    with open_shell(ROOT, environment, 60) as shell:
        refused = shell.run("create_tenant")
        assert refused.returncode != 0
        assert refused.stdout == ""
        assert "the following arguments are required" in refused.stderr
        unknown = shell.run("no_such_command")
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert "Unknown command" in unknown.stderr
        keys = shell.run("signing_keys")
        assert (keys.returncode, keys.stderr) == (0, "")
        assert keys.stdout.startswith("{")
    assert find_processes(tmp_path) == []


def test_a_process_that_ended_is_told_and_one_that_is_left_is_gone(tmp_path: Path) -> None:
    environment = make_environment(DATA_DIR=str(tmp_path))
    with open_shell(ROOT, environment | {"PORT": "none"}, 60) as shell:
        assert shell.run("check").returncode != 0
        assert shell.run("check").returncode != 0
    with pytest.raises(ZeroDivisionError), open_shell(ROOT, environment, 60):
        raise ZeroDivisionError
    assert find_processes(tmp_path) == []

"""What keeps the tree in shape: layers, migrations, error codes."""

import re
import subprocess
import sys
from pathlib import Path

from django.core.management import call_command

from tenants.exceptions import ServiceError, all_errors

ROOT = Path(__file__).resolve().parents[2]


def test_apps_import_only_what_stands_below_them() -> None:
    # Not the start script: that one fails in folders with odd names.
    program = "from importlinter.cli import lint_imports_command as lint; lint()"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_models_have_their_migrations() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_error_codes_are_unique_titled_and_documented() -> None:
    documented = (ROOT / "docs/reference/errors.md").read_text("utf-8")
    codes = [error.code for error in all_errors()]
    assert len(codes) == len(set(codes))
    for error in all_errors():
        assert error.title != ServiceError.title or error.status == 403, error
        assert error().detail.endswith("."), error
        assert re.search(rf"\b{error.code}\b", documented), error.code


def test_the_tree_of_errors_names_every_one() -> None:
    drawn = (ROOT / "tenants/exceptions.py").read_text("utf-8").split('"""')[1]
    for error in all_errors():
        assert error.__name__ in drawn


def test_no_admin_edits_in_lists() -> None:
    """C073: rows of an editable list are matched by position, and half a page can be saved."""
    from django.contrib import admin

    assert not [page for page in admin.site._registry.values() if page.list_editable]

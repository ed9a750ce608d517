"""The scope of a git checkout, read from its remote and its branch."""

import re
import subprocess
from pathlib import Path

from tenants.exceptions import ValidationError
from tenants.scopes import Scope

#: Owner and name at the end of a remote's address, whichever way that is written.
_REMOTE = re.compile(r".*[/:](?P<owner>[^/:]+)/(?P<name>[^/:]+?)(\.git)?/?")


def find_scope(folder: Path, *, of_branch: bool = False) -> Scope:
    """
    Return the scope of the repository, or of the branch, that is checked out in `folder`.

    Raises:
        ValidationError: `folder` is in no checkout, it has no remote, or no branch is checked out.
    """
    found = _REMOTE.fullmatch(_git(folder, "remote", "get-url", "origin"))
    if found is None:
        raise ValidationError(
            "No scope can be told from this folder: it is no git checkout with a remote `origin`."
            " Name one with --scope."
        )
    repository = f"{found['owner']}/{found['name']}"
    if not of_branch:
        return Scope.parse(f"repo::{repository}", creating=True)
    branch = _git(folder, "symbolic-ref", "--short", "HEAD")
    if not branch:
        raise ValidationError("No branch is checked out here. Name a scope with --scope.")
    return Scope.parse(f"branch::{repository}::{branch}", creating=True)


def _git(folder: Path, *arguments: str) -> str:
    """Return what git says in one line; empty where it refuses, or is not installed."""
    try:
        ran = subprocess.run(  # noqa: S603  fixed arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607  the user's own
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""

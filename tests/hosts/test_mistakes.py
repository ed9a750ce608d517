"""What a newcomer gets wrong is answered with what to do, not with an error from inside."""

from pathlib import Path

import pytest

from tests.hosts.projects import Host

#: `check` without --database connects to nothing.
NOWHERE = {"PGDATABASE": "none"}


@pytest.fixture
def bakery(installed: Path, tmp_path: Path) -> Host:
    return Host.copy(
        "plain", tmp_path, installed=installed, settings="bakery.settings", database=NOWHERE
    )


@pytest.fixture
def studio(installed: Path, tmp_path: Path) -> Host:
    return Host.copy(
        "mapped", tmp_path, installed=installed, settings="studio.settings_apart", database=NOWHERE
    )


def edit(host: Host, file: str, old: str, new: str) -> None:
    path = host.folder / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def complaint(host: Host, identifier: str) -> str:
    """Return the one line of `check` that holds the identifier."""
    ran = host.run("manage.py", "check")
    (line,) = [line for line in ran.stderr.splitlines() if identifier in line]
    return line


def test_without_mistakes_there_is_no_complaint(bakery: Host, studio: Host) -> None:
    for host in (bakery, studio):
        ran = host.run("manage.py", "check", "--fail-level", "INFO")
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", ["audit", "tenants", "privacy"])
def test_a_package_of_the_same_name(bakery: Host, name: str) -> None:
    (bakery.folder / name).mkdir()
    (bakery.folder / name / "__init__.py").touch()
    line = complaint(bakery, "consentful.E004")
    assert f"the package {name} is not Consentful's" in line
    assert "ename that one" in line


@pytest.mark.parametrize(("app", "asker"), [("guardian", "tenants"), ("tenants", "consent")])
def test_an_app_that_was_forgotten(bakery: Host, app: str, asker: str) -> None:
    edit(bakery, "bakery/settings.py", f'    "{app}",\n', "")
    line = complaint(bakery, "consentful.E005")
    assert f"the app {asker}" in line
    assert f"needs {app} in" in line


def test_times_without_an_offset(bakery: Host) -> None:
    edit(bakery, "bakery/settings.py", "USE_TZ = True", "USE_TZ = False")
    assert "needs aware times" in complaint(bakery, "consentful.E011")


def test_guardian_left_to_its_defaults(bakery: Host) -> None:
    edit(bakery, "bakery/settings.py", "ANONYMOUS_USER_NAME = None\n", "")
    assert "Without ANONYMOUS_USER_NAME," in complaint(bakery, "consentful.W002")


def test_addresses_that_were_forgotten(bakery: Host) -> None:
    edit(bakery, "bakery/urls.py", '    path("api/v1/", include("consent.urls")),\n', "")
    assert "without consent.urls." in complaint(bakery, "consentful.W003")


def test_addresses_in_an_order_that_hides_some(bakery: Host) -> None:
    edit(bakery, "bakery/urls.py", '    path("api/v1/", include("privacy.urls")),\n', "")
    edit(
        bakery,
        "bakery/urls.py",
        "urlpatterns = [\n",
        'urlpatterns = [\n    path("api/v1/", include("privacy.urls")),\n',
    )
    assert "agents.urls is never reached" in complaint(bakery, "consentful.E010")


def test_a_product_may_use_the_services_alone(bakery: Host) -> None:
    for name in ("tenants", "consent", "preferences", "agents", "privacy"):
        edit(bakery, "bakery/urls.py", f'    path("api/v1/", include("{name}.urls")),\n', "")
    ran = bakery.run("manage.py", "check", "--fail-level", "INFO")
    assert ran.returncode == 0, ran.stderr


def test_users_without_groups(studio: Host) -> None:
    edit(studio, "accounts/models.py", "AbstractBaseUser, PermissionsMixin", "AbstractBaseUser")
    assert "accounts.User has no groups" in complaint(studio, "consentful.E008")


def test_users_in_another_database_than_tenants(studio: Host) -> None:
    edit(studio, "studio/routers.py", '"accounts", "admin"', '"admin"')
    assert "Users are written to the database default" in complaint(studio, "consentful.E009")

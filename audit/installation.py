"""
Whether what belongs together is installed together: asked before any model is imported.

Knows the apps by name alone. A mistake found here would otherwise show as an ImportError or a
RuntimeError somewhere inside the packages.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

#: The folder names are general words: another package of that name may stand first on the path.
PACKAGES = ("audit", "tenants", "consent", "preferences", "agents", "privacy")


def find_shadows() -> dict[str, str]:
    """Return the packages that do not come from where this one does, and where they are."""
    here = Path(__file__).resolve().parent.parent
    shadows = {}
    for name in PACKAGES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != here:
            shadows[name] = str(origin.parent if origin else "a folder without __init__.py")
    return shadows


def check_shadows() -> None:
    """
    See that the packages are the distribution's own.

    Raises:
        ImproperlyConfigured: another package of one of their names is found first.
    """
    for name, place in find_shadows().items():
        raise ImproperlyConfigured(
            f"consentful.E004: the package {name} is not Consentful's but {place}."
            " Rename that one, or put Consentful before it on the path."
        )


class InstalledApp(AppConfig):
    """Base of the apps' configurations: says which apps one cannot be without."""

    #: Django takes the one configuration of an `apps.py`, unless several offer themselves.
    default = False
    default_auto_field = "django.db.models.BigAutoField"

    needs: ClassVar[tuple[str, ...]] = ()

    def import_models(self) -> None:
        registry = self.apps  # known by now: every app has been created
        missing = [name for name in self.needs if registry and not registry.is_installed(name)]
        if missing:
            raise ImproperlyConfigured(
                f"consentful.E005: the app {self.name} needs {', '.join(missing)} in"
                " INSTALLED_APPS too."
            )
        super().import_models()

"""The same product, with people and what is remembered about them in a second database."""

from studio.settings import *  # noqa: F403
from studio.settings import BASE_DIR, DATABASES

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "product.sqlite3",
        "ATOMIC_REQUESTS": True,
    },
    "people": DATABASES["default"],
}
DATABASE_ROUTERS = ["studio.routers.PeopleApart"]

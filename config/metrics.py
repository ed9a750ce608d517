"""
What Prometheus reads of the standalone service: `/metrics`, for whoever has its token.

A token and not the caller's address: behind a proxy on the same machine every caller comes from
loopback. Without `METRICS_TOKEN`, or without the package, the address does not exist.
"""

import os
import platform
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache

from preferences.backlog import BacklogCollector
from tenants.conf import metrics_directory
from tenants.exceptions import InvalidToken, NotAuthenticated, NotFound, ServiceError
from tenants.extras import prometheus
from tenants.metrics import instruments
from tenants.middleware import request_id_of
from tenants.problems import answer_problem
from tenants.results import VERIFICATION

#: Names the folder in which processes count together; `prometheus_client` reads it.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in Prometheus' text format."""
    refusal = _find_refusal(request)
    if refusal is not None:
        request_id_of(request)
        return answer_problem(request, refusal)
    client = prometheus()
    return HttpResponse(
        client.generate_latest(make_registry()), content_type=client.CONTENT_TYPE_LATEST
    )


def _find_refusal(request: HttpRequest) -> ServiceError | None:
    token: str | None = settings.METRICS_TOKEN
    if token is None or prometheus() is None:
        return NotFound("There is no such route.")
    scheme, _, given = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if not given or scheme.lower() != "bearer":
        return NotAuthenticated()
    return None if constant_time_compare(given.strip(), token) else InvalidToken()


def make_registry() -> Any:
    """Return a registry of everything: counted by all processes, measured now, left by commands."""
    client = prometheus()
    instruments()  # before anything was counted, zero is the answer
    registry = client.CollectorRegistry()
    if os.environ.get(SHARED):
        client.multiprocess.MultiProcessCollector(registry)
    else:
        registry.register(client.REGISTRY)
    registry.register(BacklogCollector())
    registry.register(VerificationCollector())
    registry.register(BuildCollector())
    return registry


class VerificationCollector:
    """What the last `verify_audit` left, which ran in a process of its own."""

    def collect(self) -> Iterable[Any]:
        """Yield the metrics of its file; none where it never ran here."""
        directory = metrics_directory()
        if directory is None:
            return []
        try:
            text = (directory / VERIFICATION).read_text("utf-8")
        except OSError:
            return []
        return list(prometheus().parser.text_string_to_metric_families(text))


class BuildCollector:
    """Which version of what runs here."""

    def collect(self) -> Iterable[Any]:
        """Yield one gauge that is 1."""
        labels = {
            "version": find_version(),
            "python": platform.python_version(),
            "django": django.get_version(),
        }
        family = prometheus().core.GaugeMetricFamily(
            "consentful_build_info", "Versions of this service, as labels.", labels=list(labels)
        )
        family.add_metric(list(labels.values()), 1)
        return [family]


@cache
def find_version() -> str:
    """Return the version of the installed distribution, else of the tree that this runs from."""
    try:
        return version("consentful")
    except PackageNotFoundError:
        project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text("utf-8"))
        return str(project["project"]["version"])

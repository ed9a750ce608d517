"""The admin's dashboard of one tenant: charts with their numbers, each for whoever may see its list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from privacy.charts import Chart, draw_bars, draw_columns
from privacy.dashboard import (
    Waiting,
    ask_waiting,
    chart_consents,
    chart_expiries,
    chart_refusals,
    chart_waiting,
)
from tenants.admin_base import Link, TenantModelAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A chart as the page shows it: drawn, with its table and the way to what it counts."""

    chart: Chart
    svg: SafeString
    way: Link
    #: A last column of the table, which is no number of the chart.
    ages: Sequence[str] = ()

    @property
    def rows(self) -> Sequence[tuple[str, Sequence[int], str]]:
        """The lines of the table."""
        ages = self.ages or [""] * len(self.chart.labels)
        return [(*row, age) for row, age in zip(self.chart.rows, ages, strict=True)]


class DashboardPages(TenantModelAdmin):
    """The dashboard, beside the pages of erasures."""

    change_list_template = "admin/consentful_privacy/erasure/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.dashboard_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_dashboard"
        return [path("dashboard/", view, name=name), *super().get_urls()]

    def dashboard_view(self, request: HttpRequest) -> HttpResponse:
        """Show how consent fares in the chosen tenant, and what waits."""
        response: HttpResponse = self.inside(request, lambda more: self._dashboard(request, more))
        return response

    def _dashboard(self, request: HttpRequest, more: dict[str, Any]) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        now, waiting = ask_waiting(more["tenant"].pk)
        panels = self._panels(request, more["tenant"].pk, now, waiting)
        context = {
            **self.admin_site.each_context(request),
            **more,
            "title": "Dashboard",
            "opts": self.opts,
            "now": now,
            "panels": panels,
            "media": self.media,
        }
        return TemplateResponse(request, "admin/consentful_privacy/erasure/dashboard.html", context)

    def _panels(
        self, request: HttpRequest, tenant_id: int, now: Any, waiting: Sequence[Waiting]
    ) -> Sequence[Panel]:
        """Return the charts whose list is open to the user; the others are not asked for."""
        erasures = self.way(
            "Unfinished erasures", "consentful_privacy_erasure", "changelist", query="state=open"
        )
        consents = self.way("Decisions", "consentful_consent_consententry", "changelist")
        records = self.way("Preferences", "consentful_preferences_preference", "changelist")
        events = self.way("Trail", "consentful_audit_event", "changelist")
        open_ways = self.open_links(request, [erasures, consents, records, events])
        found = [
            Panel(
                chart=(chart := chart_waiting(waiting)), svg=draw_bars(chart), way=erasures,
                ages=[words_for(one.age) for one in waiting],
            )
        ]  # fmt: skip
        if consents in open_ways:
            charts = chart_consents(tenant_id, now)
            # One scale for all, so that they can be compared.
            top = max((one.top for one in charts), default=0)
            found += [
                Panel(chart=one, svg=draw_columns(one, top=top), way=consents) for one in charts
            ]
        if records in open_ways:
            chart = chart_expiries(tenant_id, now)
            found.append(Panel(chart=chart, svg=draw_columns(chart), way=records))
        if events in open_ways:
            chart = chart_refusals(tenant_id, now)
            found.append(Panel(chart=chart, svg=draw_columns(chart), way=events))
        return found


def words_for(age: timedelta | None) -> str:
    """Return how long something waits, in its two largest units."""
    if age is None:
        return "-"
    seconds = int(age.total_seconds())
    for size, large, less, small in (
        (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"),
    ):  # fmt: skip
        if seconds >= size:
            return f"{seconds // size} {large} {seconds % size // less} {small}"
    return f"{seconds} s"

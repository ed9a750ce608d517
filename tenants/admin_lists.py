"""
Lists of the admin that stay quick over millions of rows: pages by key, no count, bounded filters.

Newest first. A filter that an index answers narrows the query; any other one (`Scanned`) is applied
to a bounded number of rows per page, and the page then says where to go on.
"""

from collections.abc import Callable, Iterator
from datetime import UTC
from functools import cache
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.exceptions import ServiceError

BEFORE = "before"
AFTER = "after"
#: Rows that one page looks at for filters without an index.
MOST_SCANNED = 10_000


@cache
def shown_time(name: str) -> Callable[[Any], str]:
    """Return the column of a moment, to the second: Django's own way of writing it rounds."""

    def show(obj: Any) -> str:
        moment = getattr(obj, name)
        return "-" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

    show.__name__ = name
    show.short_description = name.replace("_", " ")  # type: ignore[attr-defined]  # Django's way
    return show


class Scanned:
    """Marks a list filter that no index answers."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return what the filter leaves of a bounded number of rows."""
        raise NotImplementedError


class TextFilter(admin.SimpleListFilter):
    """A filter by an exact text that is typed, where a list of choices would be endless."""

    template = "admin/consentful/text_filter.html"
    help_text = ""
    placeholder = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Keep the other filters when this one is sent."""
        for name, values in changelist.filter_params.items():
            if name not in (self.parameter_name, BEFORE, AFTER):
                for value in values:
                    yield {"name": name, "value": value}


class KeysetChangeList(ChangeList):
    """A page of rows around a primary key. Knows no page numbers and counts nothing."""

    newer: str | None
    older: str | None
    newest: str | None
    #: Whether the page stopped looking before it was full.
    is_cut: bool
    #: What a link from another page asked for, in words.
    link_text: str

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in (BEFORE, AFTER)}

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        before, after = self._number(BEFORE), self._number(AFTER)
        self.is_cut = False
        try:
            rows = self._page_after(after) if after else None
            if rows is None:
                rows = self._page_before(before)
        except ServiceError as refusal:
            messages.error(request, refusal.detail)
            rows, self.newer, self.older = [], None, None
        self.newest = self._url() if before or after else None
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = False
        self.show_admin_actions = bool(rows)
        self.can_show_all = False
        self.multi_page = False
        linked: tuple[str, ...] = getattr(self.model_admin, "linked", ())
        self.link_text = " ".join(str(self.params[name]) for name in linked if name in self.params)
        self.is_narrowed = bool(self.query or self.link_text) or self.has_active_filters

    def _page_before(self, before: int) -> list[Any]:
        """Return the rows older than a key, newest first."""
        rows = self.queryset.order_by("-pk")
        if before:
            rows = rows.filter(pk__lt=before)
        edge = self._edge(rows)
        if edge:
            rows = rows.filter(pk__gte=edge)
        found = list(self._scanned(rows)[: self.list_per_page + 1])
        page = found[: self.list_per_page]
        self.newer = self._url(after=page[0].pk if page else before - 1) if before else None
        self.older = None
        if len(found) > self.list_per_page:
            self.older = self._url(before=page[-1].pk)
        elif edge:
            self.is_cut = True
            self.older = self._url(before=edge)
        return page

    def _page_after(self, after: int) -> list[Any] | None:
        """Return the rows newer than a key, newest first; None where that is the first page."""
        rows = self.queryset.order_by("pk").filter(pk__gt=after)
        edge = self._edge(rows)
        if edge:
            rows = rows.filter(pk__lte=edge)
        found = list(self._scanned(rows)[: self.list_per_page + 1])
        page = found[: self.list_per_page][::-1]
        self.older = self._url(before=page[-1].pk if page else after + 1)
        if len(found) > self.list_per_page:
            self.newer = self._url(after=page[0].pk)
        elif edge:
            self.is_cut = True
            self.newer = self._url(after=edge)
        else:
            return None
        return page

    @property
    def _scans(self) -> list[Scanned]:
        return [one for one in self.filter_specs if isinstance(one, Scanned)]

    def _scanned(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        for one in self._scans:
            rows = one.scan(rows)
        return rows

    def _edge(self, rows: QuerySet[Any]) -> int | None:
        """Return the key of the last row that this page may look at; None where all are few."""
        if not self._scans:
            return None
        keys = rows.values_list("pk", flat=True)[MOST_SCANNED - 1 : MOST_SCANNED]
        return next(iter(keys), None)

    def _number(self, name: str) -> int:
        text = self.params.get(name, "")
        is_number = text.isascii() and text.isdigit() and len(text) < 19
        return int(text) if is_number else 0

    def _url(self, **cursor: int) -> str:
        return self.get_query_string(cursor, remove=[BEFORE, AFTER])

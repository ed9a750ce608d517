"""The filters of the list of stored values. Only the purpose has an index; the others are bounded."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest

from consent.admin_ledger import PurposeFilter
from preferences.catalog import KINDS
from preferences.holds import held
from tenants.admin_lists import Scanned
from tenants.conf import scope_kinds

NOW = RawSQL("(SELECT consentful_now())", [])
IS_EXPIRED = Q(expires_at__isnull=False) & Q(expires_at__lte=NOW)
IS_ARCHIVED = Q(archived_at__isnull=False)


class ServedPurposeFilter(PurposeFilter):
    """By purpose, which an index answers."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return super().scan(queryset)

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class StateFilter(Scanned, admin.SimpleListFilter):
    """What is past its deadline or archived is gone for readers: it shows only when asked for."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [
            ("archived", "Archived"),
            ("expired", "Expired, not purged yet"),
            ("held", "Under a legal hold"),
        ]

    def choices(self, changelist: Any) -> Any:
        yield {
            "selected": self.value() is None,
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
            "display": "Live",
        }
        yield from list(super().choices(changelist))[1:]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        # An index knows what was ever held and not released, another what is archived.
        if self.value() == "held":
            return queryset.filter(held_at__isnull=False)
        return queryset.filter(IS_ARCHIVED) if self.value() == "archived" else queryset

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "held":
            return held(queryset)
        if self.value() == "expired":
            return queryset.filter(IS_EXPIRED)
        queryset = queryset.exclude(IS_EXPIRED)
        return queryset if self.value() == "archived" else queryset.exclude(IS_ARCHIVED)


class SourceFilter(Scanned, admin.SimpleListFilter):
    title = "source"
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        names = ("user_confirmed", "operator", "agent", "import", "system")
        return [(name, name.replace("_", " ")) for name in names]

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(source=self.value()) if self.value() else queryset


class KindFilter(Scanned, admin.SimpleListFilter):
    title = "kind of scope"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [(kind, kind) for kind in (*KINDS, *scope_kinds())]

    def scan(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        kind = self.value()
        if not kind:
            return queryset
        if kind == "global":
            return queryset.filter(scope=kind)
        return queryset.filter(scope__startswith=f"{kind}::")


def with_state(queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows, each with the database's time, which alone says what is expired."""
    rows: QuerySet[Any] = queryset.annotate(moment=NOW)
    return rows

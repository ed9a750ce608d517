"""Searching and ranking what is stored, over HTTP."""

from django.http import HttpResponse
from rest_framework.request import Request

from preferences import openapi
from preferences.ranked import Ranked, rank_preferences
from preferences.searching import Hit, parse_place, search_preferences
from preferences.views import check_scopes, read_flag, read_scopes, results_as_json
from tenants.exceptions import ValidationError
from tenants.pages import read_limit
from tenants.roles import READERS
from tenants.scopes import Scope
from tenants.views import TenantAPIView, answer


class SearchView(TenantAPIView):
    """The records whose text holds the words that are asked for."""

    roles = {"GET": READERS}
    operations = {"GET": openapi.SEARCH}
    parameters = {"GET": {"q": False, "scope": True, "limit": False}}

    def check_access(self, request: Request) -> None:
        check_scopes(request, self.caller, parse_place)

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        if "q" not in parameters:
            raise ValidationError("Say what to search for.", pointer="/query/q")
        limit = read_limit(parameters)
        hits, withheld = search_preferences(
            caller=self.caller,
            query=str(parameters["q"]),
            scopes=read_scopes(parameters, self.caller, parse_place) or None,
            limit=limit,
        )
        return answer(results_as_json([Hit.as_json(hit) for hit in hits], withheld))


class RankedView(TenantAPIView):
    """The records of several scopes in the order in which they matter."""

    roles = {"GET": READERS}
    operations = {"GET": openapi.RANK}
    parameters = {"GET": {"scope": True, "term": True, "limit": False, "diverse": False}}

    def check_access(self, request: Request) -> None:
        check_scopes(request, self.caller, Scope.parse)

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        found, withheld = rank_preferences(
            caller=self.caller,
            scopes=read_scopes(parameters, self.caller, Scope.parse),
            terms=parameters.getlist("term"),
            limit=limit,
            is_diverse=read_flag(parameters, "diverse"),
        )
        return answer(results_as_json([Ranked.as_json(one) for one in found], withheld))

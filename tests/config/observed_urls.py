"""Routes that break, with a value in every place that a report could show."""

from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from config import urls
from config.urls import handler400, handler403, handler404, handler500  # noqa: F401
from tenants.roles import ANYONE
from tenants.views import TenantAPIView


class BrokenView(TenantAPIView):
    """A view of ours with a fault."""

    roles = {"PUT": ANYONE}

    def put(self, request: Any, tenant: str, words: str) -> HttpResponse:
        body = self.request._request.body.decode()
        raise RuntimeError(f"{words} {body}")


@csrf_exempt
def broken_page(request: HttpRequest, words: str) -> HttpResponse:
    """A view of a host, with a fault whose words PostgreSQL adds a row to."""
    form = dict(request.POST)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS page (words text CHECK (words = ''))")
        cursor.execute("INSERT INTO page VALUES (%s)", [f"{words} {form}"])
    return HttpResponse()


urlpatterns = [
    path("api/v1/tenants/<str:tenant>/broken/<str:words>", BrokenView.as_view()),
    path("page/<str:words>", broken_page),
    *urls.urlpatterns,
]

"""The service's addresses, with what its answers are compared with before them."""

from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from benchmarks.peers.views import HistoriedViewSet

handler400 = "tenants.views.bad_request"
handler403 = "tenants.views.permission_denied"
handler404 = "tenants.views.not_found"
handler500 = "tenants.views.server_error"


def constant(request: HttpRequest) -> JsonResponse:
    """Answer without a look at anything: what Django and the middleware take by themselves."""
    return JsonResponse({"value": "constant"})


router = SimpleRouter()
router.register("viewset", HistoriedViewSet)

urlpatterns = [
    path("constant", constant),
    path("", include(router.urls)),
    path("", include("config.urls")),
]

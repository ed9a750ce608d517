"""The bakery's addresses, and those of Consentful below them."""

from django.contrib import admin
from django.urls import include, path

from orders.views import place_order

urlpatterns = [
    path("admin/", admin.site.urls),
    path("orders/", place_order),
    path("api/v1/", include("tenants.urls")),
    path("api/v1/", include("consent.urls")),
    path("api/v1/", include("preferences.urls")),
    path("api/v1/", include("agents.urls")),
    path("api/v1/", include("privacy.urls")),
]

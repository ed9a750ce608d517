"""The studio's addresses; Consentful stands below a prefix of its own."""

from django.contrib import admin
from django.urls import include, path

from briefs.views import write_brief

urlpatterns = [
    path("verwaltung/", admin.site.urls),
    path("<uuid:organisation>/briefs/", write_brief),
    path("remembered/", include("tenants.urls")),
    path("remembered/", include("consent.urls")),
    path("remembered/", include("preferences.urls")),
    path("remembered/", include("agents.urls")),
    path("remembered/", include("privacy.urls")),
]

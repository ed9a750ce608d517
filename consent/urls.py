"""Routes of purposes and consent, below ``tenants/{tenant}/``."""

from django.urls import path

from consent import views

urlpatterns = [
    path("tenants/<str:tenant>/whoami", views.WhoAmIView.as_view()),
    path("tenants/<str:tenant>/purposes", views.PurposesView.as_view()),
    path("tenants/<str:tenant>/consents/<str:subject>", views.ConsentsView.as_view()),
    path("tenants/<str:tenant>/consents/<str:subject>/<str:purpose>", views.ConsentView.as_view()),
    path(
        "tenants/<str:tenant>/consents/<str:subject>/<str:purpose>/history",
        views.ConsentHistoryView.as_view(),
    ),
]

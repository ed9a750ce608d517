"""Routes of purposes and consent, below ``tenants/{tenant}/``."""

from django.urls import path

from consent import rights_views, views

urlpatterns = [
    path("tenants/<str:tenant>/whoami", views.WhoAmIView.as_view()),
    path("tenants/<str:tenant>/purposes", views.PurposesView.as_view()),
    path("tenants/<str:tenant>/consents/<str:subject>", views.ConsentsView.as_view()),
    path("tenants/<str:tenant>/consents/<str:subject>/<str:purpose>", views.ConsentView.as_view()),
    path(
        "tenants/<str:tenant>/consents/<str:subject>/<str:purpose>/history",
        views.ConsentHistoryView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/consents/<str:subject>/<str:purpose>/receipt",
        rights_views.ReceiptView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/consents/<str:subject>/<str:purpose>/confirmation",
        rights_views.ConfirmationView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/restriction",
        rights_views.RestrictionView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/restrictions",
        rights_views.RestrictionsView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/restrictions/<str:key>",
        rights_views.KeyRestrictionView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/objections",
        rights_views.ObjectionsView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/objections/<str:purpose>",
        rights_views.ObjectionView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/guardians",
        rights_views.GuardiansView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/guardians/<str:username>",
        rights_views.GuardianView.as_view(),
    ),
]

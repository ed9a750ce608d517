"""Routes for agents, below ``tenants/{tenant}/``."""

from django.urls import path

from agents.context_views import ContextView

urlpatterns = [
    path("tenants/<str:tenant>/context", ContextView.as_view()),
]

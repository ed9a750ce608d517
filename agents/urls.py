"""Routes for agents, below ``tenants/{tenant}/``."""

from django.urls import path

from agents import context_views, views

urlpatterns = [
    path("tenants/<str:tenant>/context", context_views.ContextView.as_view()),
    path("tenants/<str:tenant>/tools", views.ToolsView.as_view()),
]

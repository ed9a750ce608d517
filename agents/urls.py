"""Routes for agents, below ``tenants/{tenant}/``."""

from django.urls import path

from agents import views

urlpatterns = [
    path("tenants/<str:tenant>/tools", views.ToolsView.as_view()),
]

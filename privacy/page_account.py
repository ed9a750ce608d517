"""Signing in and out, for a service without a host that does it."""

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from privacy.conf import page_login_url
from privacy.page_base import OpenPage


class SignInPage(OpenPage):
    """Django's own login. It says nothing about which tenants there are."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, tenant: str) -> HttpResponseBase:
        return self.post(request, tenant)

    def post(self, request: HttpRequest, tenant: str) -> HttpResponseBase:
        elsewhere = page_login_url()
        if elsewhere is not None:
            return HttpResponseRedirect(elsewhere)
        view = LoginView.as_view(
            template_name="consentful/me/login.html",
            next_page=self.link("overview"),
            redirect_authenticated_user=False,
            extra_context=self.frame(),
        )
        response: HttpResponseBase = view(request)
        return response


class SignOutPage(OpenPage):
    """The end of a session."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, tenant: str) -> HttpResponse:
        logout(request)
        messages.success(request, _("You are signed out."), fail_silently=True)
        return self.go("login")

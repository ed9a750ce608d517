"""What every page of a person stands on: who asks, in which language, refusals, headers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.http import escape_leading_slashes
from django.utils.translation.trans_real import parse_accept_lang_header
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import CSRFCheck

from audit.services import record_event
from preferences.readings import note_disclosure
from privacy.conf import page_languages, page_login_url
from privacy.page_wards import Ward, act_at, find_wards, split_place
from privacy.page_words import explain
from tenants.callers import Caller, find_caller
from tenants.conf import resolve_tenant
from tenants.exceptions import (
    CSRFFailed,
    Forbidden,
    MethodNotAllowed,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    ServiceError,
)
from tenants.middleware import mark_private, request_id_of
from tenants.models import Tenant
from tenants.privacy_control import announce
from tenants.problems import as_service_error, log_fault
from tenants.roles import Role
from tenants.units import database, record_denied, unit_of_work

#: Who has a page, if it stands for a person. An auditor sees no values, an agent decides nothing.
PERSONS = frozenset({Role.MEMBER, Role.OPERATOR, Role.OWNER})
#: The parts of a page, in the order of its menu.
PARTS = ("overview", "consents", "activity", "export", "forget")


class OpenPage(View):
    """
    A page that asks for no session: its language, its headers, its refusals in plain words.

    Without a host's middleware, and whatever the host's own pages look like: forms are checked
    against forgery here, so that a refusal is a page of ours too.
    """

    #: As the address says it: the tenant, and for whom a guardian acts.
    place: str
    tenant: str
    ward: str

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view = csrf_exempt(super().as_view(**initkwargs))
        # A host's ATOMIC_REQUESTS would take the denied event back with the refused request.
        for alias in connections:
            view = transaction.non_atomic_requests(alias)(view)
        return view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.place = kwargs.get("tenant", "")
        self.tenant, self.ward = split_place(self.place)
        chosen = request.GET.get("language")
        if request.method == "GET" and chosen in page_languages():
            return remember_language(request, str(chosen))
        check = CSRFCheck(lambda _: HttpResponse())
        with translation.override(language_of(request)):
            try:
                self.check_forgery(check, request)
                response = self.answer(request, **kwargs)
                if hasattr(response, "render"):
                    response = response.render()  # in this language
            except Exception as problem:  # noqa: BLE001  every refusal is a page
                response = self.refuse(request, problem)
        check.process_response(request, response)
        return finish(request, response)

    def check_forgery(self, check: CSRFCheck, request: HttpRequest) -> None:
        """
        Refuse a form that did not come from a page of this session.

        Raises:
            CSRFFailed: it did not.
        """
        check.process_request(request)
        if check.process_view(request, None, (), {}):  # type: ignore[arg-type]  # no view: DRF does so
            raise CSRFFailed

    def answer(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Return the page."""
        return super().dispatch(request, **kwargs)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        allowed = [name.upper() for name in self.http_method_names if hasattr(self, name)]
        raise MethodNotAllowed(headers={"Allow": ", ".join(allowed)})

    def refuse(self, request: HttpRequest, problem: Exception) -> HttpResponse:
        """Return the page that says why there is no other."""
        refusal = as_service_error(problem)
        if refusal.status >= 500:
            log_fault(request, problem)
        caller = getattr(self, "caller", None)
        if isinstance(refusal, Forbidden) and not isinstance(refusal, CSRFFailed) and caller:
            try:
                record_denied(refusal, tenant_id=caller.tenant_id, actor=caller.actor)
            except Exception as fault:  # noqa: BLE001  without its event a 403 is no answer
                log_fault(request, fault)
                refusal = as_service_error(fault)
        return self.show_refusal(request, refusal)

    def show_refusal(self, request: HttpRequest, refusal: ServiceError) -> HttpResponse:
        """Say what happened and what to do, without a look at the database."""
        title, sentence = explain(refusal)
        response = self.show(
            request,
            "refused",
            {
                "title": title,
                "sentence": sentence,
                "refusal": refusal,
                "request_id": request_id_of(request) if refusal.status >= 500 else None,
                "unsent": unsent_text(request),
            },
            status=refusal.status,
        )
        response.consentful_code = refusal.code  # type: ignore[attr-defined]  # for the log
        for name, value in refusal.headers.items():
            response[name] = value
        return response

    def show(
        self,
        request: HttpRequest,
        name: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
    ) -> HttpResponse:
        """Render one of the templates."""
        page = f"consentful/me/{name}.html"
        return render(request, page, {**self.frame(), **context}, status=status)

    def frame(self) -> dict[str, Any]:
        """Return what every template needs."""
        language = (settings.USE_I18N and translation.get_language()) or "en"
        return {
            "me": self.place,
            "tenant": self.tenant,
            "language": language,
            "languages": [
                {"code": code, "name": translation.get_language_info(code)["name_local"]}
                for code in (page_languages() if settings.USE_I18N else ())
                if code != language
            ],
        }

    def go(self, name: str, *args: str, anchor: str = "") -> HttpResponseRedirect:
        """Return the way to another page, which is fetched anew (RFC 9110, 303)."""
        response = HttpResponseRedirect(self.link(name, *args) + (anchor and f"#{anchor}"))
        response.status_code = 303
        return response

    def link(self, name: str, *args: str) -> str:
        """Return the address of one of the pages."""
        return reverse(f"consentful_me:{name}", args=[self.place, *args])


class Page(OpenPage):
    """
    A page of a signed-in person. Refuses in the order of the HTTP interface: who asks, the method,
    the tenant, the role.

    Who it is comes from Django's session alone: a person has no use for a token in a browser.
    """

    #: Which part of the menu it belongs to.
    part: ClassVar[str] = ""

    #: Whether it shows what is written about the person, so that others who look are noted as readers.
    shows_records: ClassVar[bool] = False

    caller: Caller
    wards: Sequence[Ward] = ()

    def answer(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        user = request.user
        if not user.is_authenticated:
            if request.method in ("GET", "HEAD"):
                return ask_to_sign_in(request, self.link("login"))
            raise NotAuthenticated
        if str(request.method).lower() not in self.http_method_names or not hasattr(
            self, str(request.method).lower()
        ):
            self.http_method_not_allowed(request)
        caller = find_caller(tenant=resolve_tenant(request, self.tenant), user_id=str(user.pk))
        if caller is None:
            raise NotAuthenticated
        if not caller.tenant_id:
            raise NotFound
        request.consentful_tenant = caller.tenant  # type: ignore[attr-defined]  # for the log
        self.caller = replace(caller, request_id=request_id_of(request))
        if caller.is_agent or caller.subject is None or not caller.roles & PERSONS:
            raise PermissionDenied("This sign-in stands for no person here.")
        self.wards = find_wards(self.caller, self.tenant)
        if self.ward:
            self.caller = act_at(self.caller, self.ward)
        # Before the page: what the person decides with this very request is the later word.
        elif request.META.get("HTTP_SEC_GPC") == "1":
            announce(self.caller)
        response = super().answer(request, **kwargs)
        if self.caller.is_guardian and request.method in ("GET", "HEAD"):
            self.note_sight()
        return response

    def note_sight(self) -> None:
        """Leave the event of a guardian's look, before anything is sent."""
        caller = self.caller
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            record_event(
                "data.disclosed", tenant_id=caller.tenant_id, actor=caller.actor,
                subject=self.subject, using=database(),
            )  # fmt: skip
            if self.shows_records:
                note_disclosure(caller=caller, subject=self.subject)

    @property
    def subject(self) -> str:
        """External id of the person whose page it is."""
        if self.caller.subject is None:
            raise PermissionDenied("This sign-in stands for no person here.")
        return self.caller.subject

    def show(
        self,
        request: HttpRequest,
        name: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
    ) -> HttpResponse:
        caller: Caller | None = getattr(self, "caller", None)
        frame = {"part": self.part, "has_own_login": page_login_url() is None}
        # Not after a fault: the store may be what failed.
        if caller is not None and caller.subject is not None and status < 500:
            tenant = Tenant.objects.filter(pk=caller.tenant_id).first()
            frame |= {
                "person": caller.subject,
                "keeper": (tenant and tenant.name) or caller.tenant,
                "menu": PARTS,
                "wards": self.wards,
                "own": reverse("consentful_me:overview", args=[self.tenant]),
                "acts_for": caller.subject if caller.is_guardian else None,
            }
        return super().show(request, name, {**frame, **context}, status=status)


class UnknownPage(OpenPage):
    """Everything below the pages that no route names."""

    def answer(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        raise NotFound


def language_of(request: HttpRequest) -> str:
    """Return the language of a page: what was chosen here, else what the host or browser says."""
    known = page_languages()
    wanted = [
        request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, ""),
        getattr(request, "LANGUAGE_CODE", ""),
    ]
    accepted = parse_accept_lang_header(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))
    for code in (*wanted, *(code for code, quality in accepted if quality > 0)):
        code = code.lower()
        for one in known:
            if code == one or code.partition("-")[0] == one:
                return one
    return known[0]


def remember_language(request: HttpRequest, language: str) -> HttpResponse:
    """Keep what was chosen in Django's own cookie, and show the same page again."""
    query = request.GET.copy()
    del query["language"]
    # A path that begins with two slashes would name another host.
    path = escape_leading_slashes(request.path)
    response = HttpResponseRedirect(f"{path}{'?' if query else ''}{query.urlencode()}")
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=365 * 24 * 3600,
        path=settings.LANGUAGE_COOKIE_PATH,
        domain=settings.LANGUAGE_COOKIE_DOMAIN,
        secure=settings.LANGUAGE_COOKIE_SECURE or bool(settings.SESSION_COOKIE_SECURE),
        httponly=True,
        samesite="Lax",
    )
    return finish(request, response)


def ask_to_sign_in(request: HttpRequest, own: str) -> HttpResponse:
    """Send a browser without a session to where one begins, and back afterwards."""
    query = urlencode({REDIRECT_FIELD_NAME: request.get_full_path()}, safe="/")
    return HttpResponseRedirect(f"{page_login_url() or own}?{query}")


def unsent_text(request: HttpRequest) -> str:
    """
    Return what was typed into a form that could not be taken, so that it can be copied.

    Only where the browser says that the form was one of this site: nobody else may put words here.
    """
    if request.method != "POST" or request.headers.get("Sec-Fetch-Site") != "same-origin":
        return ""
    return str(request.POST.get("value", ""))


def finish[T: HttpResponseBase](request: HttpRequest, response: T) -> T:
    """Keep the answer out of caches, frames and other hosts' reach."""
    mark_private(response)
    response["X-Request-ID"] = request_id_of(request)
    for name, text in (
        ("Content-Security-Policy", security_policy()),
        ("Referrer-Policy", "same-origin"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
    ):
        response.headers.setdefault(name, text)  # a page of its own may be stricter
    # Django's own line about a refusal names the path: the middleware's line stands for it.
    response._has_been_logged = True  # type: ignore[attr-defined]  # read by django.utils.log
    return response


def security_policy() -> str:
    """Return the Content-Security-Policy: this origin, and where the host keeps static files."""
    style = urlsplit(static("consentful/me/me.css"))
    own = f"'self' {style.scheme}://{style.netloc}" if style.netloc and style.scheme else "'self'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src {own}; font-src {own};"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )

"""What every page of the admin stands on: the chosen tenant, its unit of work, refusals, the log."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import DatabaseError, InterfaceError
from django.db.models import DateTimeField, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.urls import reverse

from tenants.admin_forms import ClosedForm
from tenants.admin_lists import KeysetChangeList, shown_time
from tenants.admin_place import OWNERS, actor_of, caller_of, tenant_of
from tenants.exceptions import NotFound, PermissionDenied, ServiceError
from tenants.middleware import mark_private, request_id_of
from tenants.models import Tenant
from tenants.problems import as_service_error, log_fault
from tenants.restores import check_current
from tenants.roles import STEWARDS, Role
from tenants.units import current_unit, record_denied, unit_of_work


class PseudonymousLog:
    """Django's own log names the row by its number alone: it outlives an erasure."""

    opts: Any

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return self._log(request, obj, ADDITION)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return self._log(request, obj, CHANGE)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Model]) -> Any:
        return [self._log(request, obj, DELETION) for obj in queryset]

    def _log(self, request: HttpRequest, obj: Model, flag: int) -> LogEntry:
        user: Any = request.user
        return LogEntry.objects.create(
            user_id=user.pk,
            content_type=ContentType.objects.get_for_model(obj),
            object_id=obj.pk,
            object_repr=f"{self.opts.verbose_name} {obj.pk}",
            action_flag=flag,
        )


#: Rows that one action takes: a page must answer within the time of a request.
MOST_SELECTED = 200


@dataclass(frozen=True, slots=True)
class Link:
    """A way from one page to a related one; `model` is ``app_model``, whose page it leads to."""

    title: str
    url: str
    model: str


class TenantModelAdmin(PseudonymousLog, admin.ModelAdmin):  # type: ignore[type-arg]
    """
    Pages of rows of the chosen tenant. Only what a subclass allows can be done to them.

    `hidden` columns are neither shown nor can a query string ask for them.
    """

    can_add = False
    can_change = False
    can_delete = False
    #: Roles that see the pages, and those that change rows; Django's permissions are asked too.
    viewers: ClassVar[frozenset[Role]] = STEWARDS
    editors: ClassVar[frozenset[Role]] = OWNERS
    #: Whether the page also works while no tenant is chosen.
    is_installation_wide = False
    #: The column that says whose row it is.
    tenant_column = "tenant_id"
    hidden: ClassVar[tuple[str, ...]] = ("salt",)
    #: Columns that links may ask for; every one has an index.
    linked: ClassVar[tuple[str, ...]] = ()
    #: What the page is for, above the list, and what to do while it is empty.
    purpose_text = ""
    empty_text = "There is nothing here yet."
    #: What does for many rows what an action does for some.
    bulk_text = ""

    change_list_template = "admin/consentful/change_list.html"
    change_form_template = "admin/consentful/change_form.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count every row
    list_per_page = 50
    ordering = ("-pk",)
    sortable_by = ()
    save_as_continue = False

    class Media:
        css: ClassVar[dict[str, tuple[str, ...]]] = {"all": ("consentful/admin.css",)}

    # The unit around every page ----------------------------------------------------------------

    def unit(
        self, request: HttpRequest, tenant: Tenant | None, object_id: str | None
    ) -> AbstractContextManager[Any]:
        """Return the unit of work of one page; tenant 0 stands for the installation."""
        tenant_id = tenant.pk if tenant else 0
        subjects: Sequence[str] = ()
        if tenant is not None and request.method == "POST":
            subjects = self.fenced(request, tenant, object_id)
        return unit_of_work(tenant_id=tenant_id, actor=actor_of(request), subjects=subjects)

    def fenced(self, request: HttpRequest, tenant: Tenant, object_id: str | None) -> Sequence[str]:
        """Return the persons whose data a POST to this page may change."""
        return ()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        view = super().changelist_view

        def show(more: dict[str, Any]) -> Any:
            if request.method == "POST" and not self.get_actions(request):
                raise DjangoPermissionDenied
            return view(request, more)

        return self.inside(request, show, extra_context)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        view = super().changeform_view
        return self.inside(
            request,
            lambda more: view(request, object_id, form_url, more),
            extra_context,
            object_id,
        )

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        view = super().delete_view
        return self.inside(
            request, lambda more: view(request, object_id, more), extra_context, object_id
        )

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        view = super().history_view
        return self.inside(request, lambda more: view(request, object_id, more), extra_context)

    @property
    def is_personal(self) -> bool:
        """Whether the rows are about persons: not shown while a restored database is behind."""
        names = {field.name for field in self.model._meta.get_fields()}
        return "subject" in names or "erased_at" in names

    def inside(
        self,
        request: HttpRequest,
        view: Callable[[dict[str, Any]], Any],
        extra_context: Any = None,
        object_id: str | None = None,
        unit: AbstractContextManager[Any] | None = None,
    ) -> Any:
        """
        Answer inside the unit, rendering included: templates read rows too.

        Args:
            unit: in the place of the page's own, for a view that opens its units itself.
        """
        tenant = tenant_of(request)
        if tenant is None and not self.is_installation_wide:
            return self.ask_for_tenant(request)
        try:
            if self.is_personal:
                check_current()
            with unit or self.unit(request, tenant, object_id):
                response = view({**self.header_of(tenant), **(extra_context or {})})
                if isinstance(response, SimpleTemplateResponse):
                    response.render()
                mark_private(response)
                return response
        except DjangoPermissionDenied:
            denied = PermissionDenied("You may not do this in this tenant.")
            if tenant is not None:
                record_denied(denied, tenant_id=tenant.pk, actor=actor_of(request))
            return self.refuse(request, denied)
        except ServiceError as refusal:
            if request.method != "POST":
                return self.refuse(request, refusal)
            self.message_user(request, refusal.detail, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
        except (DatabaseError, InterfaceError) as fault:
            unavailable = as_service_error(fault)
            if unavailable.status != 503:
                raise
            log_fault(request, fault)
            return self.refuse(request, unavailable)

    def refuse(self, request: HttpRequest, refusal: ServiceError) -> HttpResponse:
        """Say in a page of the admin why there is no other page."""
        context = {
            **self.admin_site.each_context(request),
            **self.header_of(tenant_of(request)),
            "title": refusal.title,
            "refusal": refusal,
            "opts": self.opts,
            "request_id": request_id_of(request),
        }
        response = TemplateResponse(
            request, "admin/consentful/refused.html", context, status=refusal.status
        )
        mark_private(response)
        return response.render()

    def header_of(self, tenant: Tenant | None) -> dict[str, Any]:
        """Name the tenant at the top of the page."""
        title = self.admin_site.site_header
        return {
            "site_header": f"{title}: {tenant}" if tenant else title,
            "purpose_text": self.purpose_text,
            "tenant": tenant,
        }

    def ask_for_tenant(self, request: HttpRequest) -> HttpResponse:
        """Send the user to the list of tenants."""
        self.message_user(request, "Choose a tenant first.", messages.WARNING)
        return HttpResponseRedirect(
            reverse(
                f"admin:{Tenant._meta.app_label}_tenant_changelist",
                current_app=self.admin_site.name,
            )
        )

    def link(self, model: str, verb: str, *args: Any, query: str = "") -> str:
        """Return the address of a page of the admin; `model` is ``app_model``."""
        url = reverse(f"admin:{model}_{verb}", args=args, current_app=self.admin_site.name)
        return f"{url}?{query}" if query else url

    def lead_of(self, obj: Any) -> str:
        """Return a line above one row's page, where its heading does not say enough."""
        return ""

    def links_of(self, request: HttpRequest, obj: Any) -> Sequence[Link]:
        """Return the ways from one row's page to what belongs to it."""
        return [self.trail_of(obj)] if getattr(obj, "noun", None) else []

    def way(self, title: str, model: str, verb: str, *args: Any, query: str = "") -> Link:
        """Return the way to another page, under a title."""
        return Link(title, self.link(model, verb, *args, query=query), model)

    def trail_of(self, obj: Any) -> Link:
        """Return the way to the events of one row."""
        query = f"record={obj.noun}&record_id={obj.pk}"
        return self.way("Trail", "consentful_audit_event", "changelist", query=query)

    def open_links(self, request: HttpRequest, links: Sequence[Link]) -> Sequence[Link]:
        """Return those of the ways whose page is open to the user."""
        pages = {
            f"{model._meta.app_label}_{model._meta.model_name}": page
            for model, page in self.admin_site._registry.items()
        }
        return [
            one
            for one in links
            if one.model in pages and pages[one.model].has_view_permission(request)
        ]

    # Which rows, which columns -----------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        unit = current_unit()
        if unit is None:
            raise RuntimeError("The admin reads inside a unit of work alone.")
        return super().get_queryset(request).filter(**{self.tenant_column: unit.tenant_id})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return KeysetChangeList

    def get_search_fields(self, request: HttpRequest) -> Any:
        # Outside a unit stands Django's own autocompletion, which would list across tenants.
        return () if current_unit() is None else self.search_fields

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if self.is_form(request, obj):
            return list(self.form.base_fields)
        return [
            shown_time(field.name) if isinstance(field, DateTimeField) else field.name
            for field in self.opts.concrete_fields
            if field.name not in (*self.hidden, "tenant", "tenant_id", "revision")
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if self.is_form(request, obj) else self.get_fields(request, obj)

    def is_form(self, request: HttpRequest, obj: Any) -> bool:
        """Whether the row's page is a form; else its columns are shown."""
        return obj is None or self.has_change_permission(request, obj)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        chosen = more.pop("form", self.form) if self.is_form(request, obj) else ClosedForm
        # No column is written by a form: its last check is the service's change.
        more |= {"form": chosen, "fields": []}
        form: Any = super().get_form(request, obj, change, **more)
        form.caller = caller_of(request)
        return form

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        obj = context.get("original")
        if obj is not None:
            context["purpose_text"] = self.lead_of(obj)
        links = self.links_of(request, obj) if obj is not None else ()
        context["links"] = self.open_links(request, links)
        context["show_save_and_add_another"] = context["show_save_and_continue"] = False
        return super().render_change_form(request, context, *args, **more)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # Django allows every column of the model itself: a way to guess what is not shown, and to
        # ask for what no index answers.
        own = {getattr(one, "parameter_name", None) for one in self.list_filter}
        return lookup in own or lookup in self.linked

    # Who may -----------------------------------------------------------------------------------

    def has_role(self, request: HttpRequest, roles: frozenset[Role]) -> bool:
        """Whether the user acts in one of the roles; before a tenant is chosen, nobody knows."""
        caller = caller_of(request)
        return caller is None or bool(caller.roles & roles)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_role(request, self.viewers) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return (
            self.can_add
            and self.has_role(request, self.editors)
            and super().has_add_permission(request)
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            self.can_change
            and self.has_role(request, self.editors)
            and super().has_change_permission(request, obj)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            self.can_delete
            and self.has_role(request, self.editors)
            and super().has_delete_permission(request, obj)
        )

    # Changes -----------------------------------------------------------------------------------

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        return form.outcome  # the form's last check was the change itself

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.consentful_is_unchanged = form.is_unchanged

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        pass

    def construct_change_message(self, *args: Any, **more: Any) -> Any:
        return ""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        if getattr(obj, "consentful_is_unchanged", False):
            return None
        return super().log_change(request, obj, message)

    def response_action(self, request: HttpRequest, *args: Any, **more: Any) -> Any:
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if not all(one.isascii() and one.isdigit() and len(one) < 19 for one in chosen):
            raise NotFound("No such row is listed here.")
        if len(chosen) > MOST_SELECTED or request.POST.get("select_across") == "1":
            text = f"One request takes at most {MOST_SELECTED} rows, chosen one by one."
            self.message_user(request, f"{text} {self.bulk_text}".strip(), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
        return super().response_action(request, *args, **more)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if getattr(obj, "consentful_is_unchanged", False):
            self.message_user(request, "Nothing changed.", messages.INFO)
        else:
            self.message_user(request, f"Saved: {obj}.", messages.SUCCESS)
        return HttpResponseRedirect(request.path)

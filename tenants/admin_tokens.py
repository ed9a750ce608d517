"""The admin's pages of tokens: issued and shown once, listed without the secret, revoked."""

from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tenants.admin_base import TenantModelAdmin
from tenants.admin_forms import ServiceForm, UserNameField, find_named_person
from tenants.admin_lists import shown_time
from tenants.admin_place import OWNERS, actor_of, caller_of, tenant_of
from tenants.callers import find_caller
from tenants.exceptions import NotFound, ValidationError
from tenants.models import Tenant, Token
from tenants.services import check_owner
from tenants.tokens import issue_token, revoke_token
from tenants.units import unit_of_work


class TokenForm(ServiceForm):
    class Meta:
        model = Token
        fields: ClassVar[list[str]] = []

    user = UserNameField(label="Login", help_text="Whoever holds the token acts as this login.")
    on_behalf_of = forms.CharField(
        required=False, strip=False, max_length=200,
        help_text="For an agent: the id of the one person that it reaches with this token.",
    )  # fmt: skip
    days = forms.IntegerField(
        initial=90, min_value=1, max_value=3650, help_text="The token ends by itself after these."
    )
    pointers: ClassVar[dict[str, str]] = {"scope": "on_behalf_of"}

    #: The secret, for the one page that shows it.
    credential = ""

    def perform(self, data: dict[str, Any]) -> Token:
        check_owner(self.caller)
        user = data["user"]
        known = find_caller(tenant=self.caller.tenant, user_id=str(user.pk))
        if known is None or not known.tenant_id:
            raise ValidationError(
                "This login has no role in this tenant: give it one first.", pointer="/user"
            )
        self.credential, token = issue_token(
            user=user,
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            on_behalf_of=data["on_behalf_of"] or None,
            lifetime=timedelta(days=data["days"]),
            actor=self.caller.actor,
        )
        return token


@admin.register(Token)
class TokenAdmin(TenantModelAdmin):
    """Tokens of the chosen tenant; a superuser also sees those that are bound to none."""

    can_add = True
    viewers = OWNERS
    is_installation_wide = True
    form = TokenForm
    hidden = ("salt", "digest")
    list_display = (
        "id", "user", "tenant", "on_behalf_of", shown_time("expires_at"), shown_time("revoked_at"),
    )  # fmt: skip
    list_select_related = ("user", "tenant")
    actions = ("revoke",)
    purpose_text = (
        "Credentials of programs. A token is shown once, when it is issued; here stand its owner"
        " and its end. Revoke one that leaked or is no longer needed."
    )
    empty_text = "No token was issued for this tenant yet."

    def unit(
        self, request: HttpRequest, tenant: Tenant | None, object_id: str | None
    ) -> AbstractContextManager[Any]:
        if tenant is not None and request.method == "POST" and request.path.endswith("/add/"):
            return unit_of_work(
                tenant_id=tenant.pk, actor=actor_of(request),
                subjects=find_named_person(request, "on_behalf_of"),
            )  # fmt: skip
        return nullcontext()  # each token is revoked in the unit of its own tenant

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        tenant = tenant_of(request)
        reach = Q(tenant=tenant) if tenant else Q(pk__in=[])
        if request.user.is_superuser:
            reach |= Q(tenant=None)
        return Token.objects.filter(reach).order_by(*self.ordering)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return caller_of(request) is not None and super().has_add_permission(request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether the user may revoke: an owner, as Django's permission to change tokens says."""
        return self.has_role(request, OWNERS) and admin.ModelAdmin.has_change_permission(
            self, request
        )

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.credential = form.credential

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        """Show the token in this one answer: no message, session or log keeps it."""
        context = {
            **self.admin_site.each_context(request),
            **self.header_of(tenant_of(request)),
            "title": "The new token",
            "opts": self.opts,
            "token": obj,
            "credential": obj.credential,
            "media": self.media,
        }
        return TemplateResponse(request, "admin/consentful/token_issued.html", context)

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """End the life of the selected tokens; those that were revoked before are left out."""
        revoked = 0
        for token in queryset.filter(revoked_at=None):
            with suppress(NotFound):
                self.log_change(
                    request, revoke_token(token_id=token.pk, actor=actor_of(request)), ""
                )
                revoked += 1
        self.message_user(request, f"Revoked: {revoked}.", messages.SUCCESS)

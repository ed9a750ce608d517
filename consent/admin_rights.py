"""The admin's page of restrictions: what is kept and not used, and who lifted what."""

from django.contrib import admin

from consent.models import Restriction
from tenants.admin_base import TenantModelAdmin
from tenants.admin_lists import shown_time


@admin.register(Restriction)
class RestrictionAdmin(TenantModelAdmin):
    list_display = (
        shown_time("at"), "subject", "key", "method", "actor", shown_time("lifted_at"), "lifted_by",
    )  # fmt: skip
    list_display_links = (shown_time("at"),)
    list_select_related = ("subject",)
    purpose_text = (
        "What persons restricted: kept, shown to them, and used by nobody; without a key, everything."
        " Lifted ones stay, since the person is owed that notice."
    )
    empty_text = "Nobody has restricted anything."

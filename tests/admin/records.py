"""What tests of the admin's records share: reading a row, and filling in a page as a browser does."""

import re
from html import unescape

from audit.actors import SYSTEM
from preferences.models import Preference
from tenants.units import unit_of_work
from tests.admin.conftest import url

WHY = "Ticket 42"


def row_of(tenant, scope, key):
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return Preference.objects.filter(tenant=tenant, scope=scope, key=key).first()


def page(row):
    return url(Preference, "change", row.pk)


def show(client, row, reason=WHY):
    return client.post(page(row), {"_disclose": "1", "reason": reason})


def fields_of(answer):
    """Return what a browser would send back from the form on a page, unchanged."""
    text = answer.text
    found = {}
    for tag in re.findall(r"<input [^>]*>", text):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and name[1] in ("revision", "disclosure", "expires_at", "scope", "key"):
            found[name[1]] = unescape(value[1]) if value else ""
    for name, value in re.findall(r'<textarea name="(\w+)"[^>]*>\r?\n(.*?)</textarea>', text, re.S):
        # A browser sends the ends of lines as CR LF.
        found[name] = unescape(value).replace("\n", "\r\n")
    return found


def errors_of(answer):
    return unescape(
        " ".join(re.findall(r'<ul class="errorlist[^>]*>(.*?)</ul>', answer.text, re.S))
    )

"""Count what a tenant holds."""

import json
from typing import Any

from audit.actors import SYSTEM
from audit.models import Event, Seal
from consent.models import ConsentEntry
from preferences.models import Definition, Preference
from tenants.commands import ServiceCommand
from tenants.models import Subject
from tenants.services import get_tenant
from tenants.units import unit_of_work


class Command(ServiceCommand):
    help = "Count what a tenant holds, as JSON."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tenant")

    def run(self, **options: Any) -> None:
        tenant = get_tenant(slug=options["tenant"])
        models = {
            "subjects": Subject, "definitions": Definition, "preferences": Preference,
            "consent_entries": ConsentEntry, "events": Event, "seals": Seal,
        }  # fmt: skip
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            counts = {
                name: model._default_manager.filter(tenant_id=tenant.pk).count()
                for name, model in models.items()
            }
        self.stdout.write(json.dumps({"tenant": tenant.slug, **counts}))

"""The second wall around the cuts of the audit trail."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("consentful_tenants", "0002_guarantees"),
        ("consentful_audit", "0003_retention"),
    ]

    operations = [migrations.RunSQL("SELECT consentful_isolate('consentful_audit_cut');")]

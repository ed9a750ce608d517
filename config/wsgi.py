"""The service's WSGI application."""

import os

from django.core.wsgi import get_wsgi_application

from config.bodies import MeasuredBodies
from config.lifeline import end_with_parent
from config.tracing import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django_application = get_wsgi_application()

# Order matters: views may be imported once Django has been set up.
from tenants.views import MOST_BYTES  # noqa: E402

end_with_parent()
# In every worker by itself: the thread that sends spans would not survive a fork.
start_tracing()
application = MeasuredBodies(django_application, most_bytes=MOST_BYTES)

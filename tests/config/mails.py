"""Mail to admins, written down instead of sent."""

from pathlib import Path
from typing import Any

from django.conf import settings

from tenants.reports import AdminEmailHandlerWithoutValues


class MailToFile(AdminEmailHandlerWithoutValues):
    """Django's own report about a fault, written down instead of sent."""

    def send_mail(self, subject: str, message: str, *args: Any, **kwargs: Any) -> None:
        with Path(settings.MAIL_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{subject}\n{message}\n{kwargs.get('html_message')}\n")

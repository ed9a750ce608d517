"""Refusals of this app alone. The rest are the tenants' family."""

from tenants.exceptions import NotFound


class UnknownPurpose(NotFound):
    """There is no such purpose in this tenant."""

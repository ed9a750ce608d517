"""The service's settings for suites that cannot send a token."""

from tests.settings import *  # noqa: F403

CONSENTFUL_AUTHENTICATION_CLASSES = ["tests.agents.everyone.Everyone"]

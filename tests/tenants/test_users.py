"""The functions in the database name the host's user table, whatever becomes of it."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection

from tenants.apps import TenantsConfig
from tenants.callers import find_caller
from tenants.users import follow_user_table, user_table_names

FUNCTION = "consentful_caller"


def body_of(function: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE oid = to_regproc(%s)", [function])
        (body,) = cursor.fetchone()
    return str(body)


@pytest.fixture
def user_id() -> str:
    user = get_user_model()._default_manager.create_user(f"u-{uuid4().hex[:12]}")
    return str(user.pk)


@pytest.fixture
def right_body(user_id: str) -> Iterator[str]:
    """What the function should say; it names a table that is gone until the test ends."""
    right = body_of(FUNCTION)
    text = TenantsConfig.user_functions[FUNCTION].read_text("utf-8")
    names = user_table_names(get_user_model(), connection) | {"users": '"renamed"'}
    try:
        with connection.as_owner(), connection.cursor() as cursor:
            cursor.execute(text.format(**names))
        yield right
    finally:
        with connection.as_owner():
            follow_user_table(using="default")


def test_they_follow_a_table_that_was_renamed(user_id: str, right_body: str) -> None:
    with pytest.raises(DatabaseError, match="renamed"):
        find_caller(tenant="any", user_id=user_id)
    with connection.as_owner():
        follow_user_table(using="default")
    assert body_of(FUNCTION) == right_body
    assert find_caller(tenant="any", user_id=user_id) is not None


@pytest.mark.skipif(
    not connection.settings_dict["OPTIONS"].get("owner"), reason="one login does everything"
)
def test_a_login_that_owns_nothing_leaves_them(right_body: str) -> None:
    follow_user_table(using="default")
    assert body_of(FUNCTION) != right_body

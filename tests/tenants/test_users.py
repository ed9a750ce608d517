"""The functions in the database name the host's user table, whatever becomes of it."""

from typing import Any
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


def test_they_follow_a_table_that_was_renamed() -> None:
    file = TenantsConfig.user_functions[FUNCTION]
    names = user_table_names(get_user_model(), connection)
    right = body_of(FUNCTION)
    user = get_user_model()._default_manager.create_user(f"u-{uuid4().hex[:12]}")
    try:
        with connection.as_owner(), connection.cursor() as cursor:
            cursor.execute(file.read_text("utf-8").format(**names | {"users": '"renamed"'}))
        with pytest.raises(DatabaseError, match="renamed"):
            find_caller(tenant="any", user_id=str(user.pk))
    finally:
        with connection.as_owner():
            follow_user_table(using="default")
    assert body_of(FUNCTION) == right
    assert find_caller(tenant="any", user_id=str(user.pk)) is not None


def test_a_login_that_owns_nothing_changes_nothing(as_owner: Any) -> None:
    right = body_of(FUNCTION)
    follow_user_table(using="default")
    assert body_of(FUNCTION) == right

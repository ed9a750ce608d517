"""The Python interface for writing, which asks the same gate as HTTP."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model

from consent.models import Decision
from consent.services import decide
from preferences.catalog import load_catalog
from preferences.selectors import get_preference
from preferences.services import set_preference
from tenants.callers import Caller, find_caller
from tenants.exceptions import AlreadyExists, ConsentRequired, StaleRevision
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.services import create_tenant, grant_role

ME = Scope.of_subject("alice")


@pytest.fixture
def alice() -> Caller:
    tenant = create_tenant(slug=f"s-{uuid4().hex[:12]}")
    load_catalog(
        tenant=tenant,
        catalog={
            "purposes": [
                {
                    "slug": "support",
                    "title": "Support",
                    "lawful_basis": "consent",
                    "notices": [{"version": 1, "locale": "en", "text": "We remember."}],
                }
            ],
            "definitions": [{"key": "tone", "purpose": "support"}],
        },
    )
    user = get_user_model()._default_manager.create_user(f"u-{uuid4().hex[:12]}")
    grant_role(tenant=tenant, user=user, role=Role.MEMBER, subject="alice")
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))
    assert caller is not None
    return replace(caller, request_id="python")


def test_a_value_is_created_replaced_and_upserted(alice: Caller) -> None:
    with pytest.raises(ConsentRequired):
        set_preference(caller=alice, scope=ME, key="tone", value="warm")
    decide(caller=alice, subject="alice", purpose="support", decision=Decision.GIVEN, version=1)
    first = set_preference(
        caller=alice, scope=ME, key="tone", value="warm", ttl_seconds=60, tags=["a"],
        metadata={"b": 1}, provenance={"detail": "asked"},
    )  # fmt: skip
    assert (first.is_created, first.record.value) == (True, "warm")
    with pytest.raises(AlreadyExists):
        set_preference(caller=alice, scope=ME, key="tone", value="cool")
    second = set_preference(
        caller=alice, scope=ME, key="tone", value="cool", revision=first.record.revision
    )
    with pytest.raises(StaleRevision):
        set_preference(
            caller=alice, scope=ME, key="tone", value="x", revision=first.record.revision
        )
    third = set_preference(caller=alice, scope=ME, key="tone", value=[1.0], upsert=True)
    assert (second.is_created, third.is_created, third.record.seen_count) == (False, False, 3)
    read = get_preference(caller=alice, scope=ME, key="tone")
    assert (read.value, list(read.tags), read.revision) == ([1.0], ["a"], third.record.revision)

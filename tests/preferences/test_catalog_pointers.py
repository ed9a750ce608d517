"""A catalogue file's refusals lead to the entry that is off: files have hundreds of them."""

import copy
from typing import Any

import pytest

from preferences.catalog import load_catalog
from tenants.exceptions import BadRequest
from tenants.models import Tenant
from tests.factories import CATALOG, make_tenant


@pytest.fixture(scope="module")
def tenant() -> Tenant:
    return make_tenant()


@pytest.mark.parametrize(
    ("part", "index", "change", "pointer"),
    [
        ("definitions", 2, {"key": "a/b"}, "/definitions/2/key"),
        ("definitions", 2, {"schema": {"pattern": "(?=a)b"}}, "/definitions/2/schema/pattern"),
        ("definitions", 5, {"default": "dim"}, "/definitions/5/default"),
        ("definitions", 1, {"default": 1, "schema": {"type": "null"}}, "/definitions/1/default"),
        ("definitions", 1, {"titel": "x"}, "/definitions/1/titel"),
        (
            "purposes",
            1,
            {"notices": [{"version": 1, "locale": "en", "text": "Something else."}]},
            "/purposes/1/notices",
        ),
        ("purposes", 1, {"notices": [{"version": 1, "text": "x"}]}, "/purposes/1/notices/0/locale"),
        ("purposes", 1, {"notices": [3]}, "/purposes/1/notices/0"),
    ],
)
def test_a_refusal_points_into_the_file(
    tenant: Tenant, part: str, index: int, change: dict[str, Any], pointer: str
) -> None:
    catalog = copy.deepcopy(CATALOG)
    catalog[part][index] |= change
    with pytest.raises(BadRequest) as refused:
        load_catalog(tenant=tenant, catalog=catalog)
    assert [error.pointer for error in refused.value.errors] == [pointer]

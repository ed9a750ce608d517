"""A tenant whose every text holds one word, which no other tenant's answer may ever show."""

import copy
import json

from tenants.roles import Role
from tests.factories import CATALOG, Persona, change_catalog
from tests.http.client import API
from tests.http.conftest import World

MARKER = "zzforeignzz"


def fill(world: World) -> None:
    """Leave the word in the catalogue, values, keys, names, consents, reasons and the trail."""
    catalog = copy.deepcopy(CATALOG)
    for definition in catalog["definitions"]:
        definition["description"] = MARKER
    for purpose in catalog["purposes"]:
        purpose["title"] = MARKER
    change_catalog(world.tenant, **json.loads(json.dumps(catalog)))
    stranger = API(world.tenant.slug, Persona(world.tenant, MARKER, Role.MEMBER).token)
    for who in (world.alice, stranger):
        assert who.give("me", "support", evidence=MARKER).status == 200
        for key in ("tone", "k", MARKER):
            more = {"tags": [MARKER], "metadata": {MARKER: MARKER}}
            assert who.write("me", key, MARKER, provenance={"detail": MARKER}, **more).status == 201
    for scope in ("project::x", f"project::{MARKER}", "global"):
        assert world.operator.write(scope, "k", {MARKER: MARKER}).status == 201
    assert world.operator.read("user::alice", "k", query={"reason": MARKER}).status == 200
    assert world.alice.read(f"user::{MARKER}", "k").status == 403

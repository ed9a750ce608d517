"""The catalogue of a tenant: purposes, notices, definitions and the rule for undeclared keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM, Actor
from consent.catalog import load_purpose
from consent.models import Purpose
from preferences.models import Definition, UndeclaredRule, Writer
from preferences.schemas import check_default, compile_schema
from preferences.transitions import read_transitions
from tenants.conf import scope_kinds
from tenants.documents import JSONValue, canonical
from tenants.entries import (
    read_choice,
    read_choices,
    read_list,
    read_object,
    read_whole,
    update_row,
    within,
)
from tenants.exceptions import StaleRevision, ValidationError
from tenants.models import Tenant
from tenants.scopes import check_key
from tenants.units import take_back, unit_of_work

KINDS = ("user", "project", "repo", "branch", "global")
#: The members of a definition's entry.
DEFINITION = (
    "key", "purpose", "schema", "default", "ttl_default", "ttl_max", "scopes", "writers",
    "transitions", "description",
)  # fmt: skip


@dataclass(slots=True)
class Changes:
    """What loading a catalogue adds, changes and retires, as lines for a person."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return one line per difference."""
        return [
            f"{verb} {name}"
            for verb, names in (
                ("add", self.added),
                ("change", self.changed),
                ("retire", self.retired),
            )
            for name in names
        ]


def load_catalog(
    *, tenant: Tenant, catalog: JSONValue, actor: Actor = SYSTEM, is_dry_run: bool = False
) -> Changes:
    """
    Bring a tenant's catalogue to what the file says. All of it, or nothing; idempotent.

    Nothing is deleted: what the file leaves out is retired, and comes back when it is named again.

    Raises:
        ValidationError: a part of the file is off; a published notice has another text.
        InvalidKey, InvalidValue: a key or a default breaks its rules.
    """
    body = read_object(catalog, "", ("purposes", "definitions", "undeclared"))
    changes = Changes()
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        purposes = _load_purposes(tenant, read_list(body, "purposes", ""), changes, actor)
        _load_definitions(tenant, read_list(body, "definitions", ""), purposes, changes)
        _load_undeclared(tenant, body.get("undeclared") or {}, purposes, changes)
        if is_dry_run:
            take_back()
    return changes


def _load_purposes(
    tenant: Tenant, entries: list[Any], changes: Changes, actor: Actor
) -> dict[str, Purpose]:
    known = {purpose.slug: purpose for purpose in Purpose.objects.filter(tenant=tenant)}
    found: dict[str, Purpose] = {}
    for index, entry in enumerate(entries):
        at = f"/purposes/{index}"
        slug = entry.get("slug") if isinstance(entry, dict) else None
        if isinstance(slug, str) and slug in found:
            raise ValidationError("This purpose stands twice.", pointer=f"{at}/slug")
        change = load_purpose(
            tenant_id=tenant.pk, entry=entry, at=at, actor=actor,
            known=known.get(slug) if isinstance(slug, str) else None,
        )  # fmt: skip
        found[change.purpose.slug] = change.purpose
        if change.is_added:
            changes.added.append(f"purpose {slug}")
        elif change.is_changed:
            changes.changed.append(f"purpose {slug}")
        changes.added.extend(f"notice {notice}" for notice in change.notices)
    for slug, purpose in known.items():
        if slug not in found and purpose.retired_at is None:
            Purpose.objects.filter(pk=purpose.pk).update(retired_at=RawSQL("consentful_now()", []))
            changes.retired.append(f"purpose {slug}")
    return found


def _load_definitions(
    tenant: Tenant, entries: list[Any], purposes: Mapping[str, Purpose], changes: Changes
) -> None:
    known = {definition.key: definition for definition in Definition.objects.filter(tenant=tenant)}
    found = set()
    new: list[Definition] = []
    for index, entry in enumerate(entries):
        at = f"/definitions/{index}"
        entry = read_object(entry, at, DEFINITION)
        with within(at):
            key = check_key(entry.get("key"), creating=True)
        if key in found:
            raise ValidationError("This key stands twice.", pointer=f"{at}/key")
        found.add(key)
        definition, is_changed = _load_definition(
            tenant.pk, key, entry, at, purposes, known.get(key)
        )
        if key not in known:
            new.append(definition)
            changes.added.append(f"definition {key}")
        elif is_changed:
            changes.changed.append(f"definition {key}")
    Definition.objects.bulk_create(new)
    for key, definition in known.items():
        if key not in found and definition.retired_at is None:
            Definition.objects.filter(pk=definition.pk).update(
                retired_at=RawSQL("consentful_now()", [])
            )
            changes.retired.append(f"definition {key}")


def _load_definition(
    tenant_id: int,
    key: str,
    entry: dict[str, Any],
    at: str,
    purposes: Mapping[str, Purpose],
    known: Definition | None,
    *,
    is_retired: bool = False,
) -> tuple[Definition, bool]:
    """
    Bring one definition to what its entry says; return it, and whether that changed a row.

    One that is new is left to the caller to save.
    """
    kinds = [*KINDS, *scope_kinds()]
    slug = read_choice(entry, "purpose", list(purposes), at)
    schema = canonical(entry.get("schema", True))
    default = entry.get("default")
    with within(at):
        compiled = compile_schema(schema)
        if default is not None:
            check_default(compiled, default)
    ttl_default = read_whole(entry, "ttl_default", at, most=10**12)
    ttl_max = read_whole(entry, "ttl_max", at, most=10**12)
    if ttl_default and ttl_max and ttl_default > ttl_max:
        raise ValidationError("ttl_default lies beyond ttl_max.", pointer=f"{at}/ttl_default")
    transitions = read_transitions(entry.get("transitions"), f"{at}/transitions")
    wanted: dict[str, Any] = {
        "purpose_id": purposes[slug].pk,
        "schema": schema,
        "default": None if default is None else canonical(default),
        "ttl_default": ttl_default,
        "ttl_max": ttl_max,
        "scopes": read_choices({"scopes": ["user"], **entry}, "scopes", kinds, at),
        "writers": read_choices({"writers": ["subject"], **entry}, "writers", Writer.values, at),
        "transitions": None if transitions is None else canonical(entry["transitions"]),
        "description": entry.get("description") or "",
        "retired_at": None,
    }
    if not isinstance(wanted["description"], str):
        raise ValidationError("This must be a text.", pointer=f"{at}/description")
    if is_retired:
        wanted["retired_at"] = (known and known.retired_at) or RawSQL("consentful_now()", [])
    if known is None:
        return Definition(tenant_id=tenant_id, key=key, **wanted), True
    return known, update_row(known, wanted)


def save_definition(
    *, tenant_id: int, entry: dict[str, Any], revision: str | None, is_retired: bool, actor: Actor
) -> tuple[Definition, bool]:
    """
    Create one definition (without a revision), or change the version that the caller saw.

    Returns:
        The definition, and whether anything changed.

    Raises:
        ValidationError, InvalidKey, InvalidValue: a part is off, or a new one's key is taken.
        StaleRevision: it changed since.
    """
    entry = read_object(entry, "", DEFINITION)
    key = check_key(entry.get("key"), creating=True)
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        known = (
            Definition.objects.select_for_update(of=("self",))
            .filter(tenant_id=tenant_id, key=key)
            .first()
        )
        if revision is None and known is not None:
            raise ValidationError("This key has a definition already.", pointer="/key")
        if revision is not None and (known is None or known.revision != revision):
            raise StaleRevision("Somebody changed this since you opened it. Nothing was saved.")
        purposes = {
            purpose.slug: purpose
            for purpose in Purpose.objects.filter(tenant_id=tenant_id)
            if purpose.retired_at is None or (known and known.purpose_id == purpose.pk)
        }
        definition, is_changed = _load_definition(
            tenant_id, key, entry, "", purposes, known, is_retired=is_retired
        )
        if known is None:
            definition.save(force_insert=True)
        return definition, is_changed


def _load_undeclared(
    tenant: Tenant, entry: Any, purposes: Mapping[str, Purpose], changes: Changes
) -> None:
    kinds = [*KINDS, *scope_kinds()]
    entry = read_object(entry, "/undeclared", kinds)
    known = {rule.kind: rule for rule in UndeclaredRule.objects.filter(tenant=tenant)}
    new: list[UndeclaredRule] = []
    for kind in kinds:
        setting = entry.get(kind, False)
        if kind == "user" and setting is not False:
            setting = read_choice(entry, kind, list(purposes), "/undeclared")
        elif not isinstance(setting, bool):
            raise ValidationError("This is true or false.", pointer=f"/undeclared/{kind}")
        wanted = {
            "is_allowed": setting is not False,
            "purpose_id": purposes[setting].pk if isinstance(setting, str) else None,
        }
        rule = known.get(kind)
        if rule is None:
            new.append(UndeclaredRule(tenant=tenant, kind=kind, **wanted))
            if setting is not False:
                changes.added.append(f"undeclared {kind}")
        elif update_row(rule, wanted):
            changes.changed.append(f"undeclared {kind}")
    UndeclaredRule.objects.bulk_create(new)

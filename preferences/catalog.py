"""The catalogue of a tenant: purposes, notices, definitions and the rule for undeclared keys."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM, Actor
from consent.models import Purpose
from consent.services import publish_notice
from preferences.models import Definition, UndeclaredRule, Writer
from preferences.schemas import check_default, compile_schema
from tenants.conf import scope_kinds
from tenants.documents import JSONValue, canonical
from tenants.exceptions import BadRequest, ValidationError
from tenants.models import SLUG, Tenant
from tenants.scopes import check_key
from tenants.units import unit_of_work
from tenants.views import check_members

KINDS = ("user", "project", "repo", "branch", "global")


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


class _DryRun(Exception):
    """Takes everything back at the end of a dry run."""


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
    body = _object(catalog, "", ("purposes", "definitions", "undeclared"))
    changes = Changes()
    try:
        with unit_of_work(tenant_id=tenant.pk, actor=actor):
            purposes = _load_purposes(tenant, _list(body, "purposes", ""), changes, actor)
            _load_definitions(tenant, _list(body, "definitions", ""), purposes, changes)
            _load_undeclared(tenant, body.get("undeclared") or {}, purposes, changes)
            if is_dry_run:
                raise _DryRun
    except _DryRun:
        pass
    return changes


def _load_purposes(
    tenant: Tenant, entries: list[Any], changes: Changes, actor: Actor
) -> dict[str, Purpose]:
    known = {purpose.slug: purpose for purpose in Purpose.objects.filter(tenant=tenant)}
    found: dict[str, Purpose] = {}
    for index, entry in enumerate(entries):
        at = f"/purposes/{index}"
        entry = _object(entry, at, ("slug", "title", "lawful_basis", "notices", "on_withdrawal"))
        slug = _text(entry, "slug", at)
        if not SLUG.regex.match(slug):  # type: ignore[union-attr]
            raise ValidationError(f"{SLUG.message}", pointer=f"{at}/slug")
        if slug in found:
            raise ValidationError("This purpose stands twice.", pointer=f"{at}/slug")
        basis = _choice(entry, "lawful_basis", Purpose.LawfulBasis.values, at)
        on_withdrawal = _choice(
            {"on_withdrawal": "keep", **entry}, "on_withdrawal", Purpose.OnWithdrawal.values, at
        )
        wanted = {
            "title": _text({"title": slug, **entry}, "title", at, most=200),
            "lawful_basis": basis,
            "on_withdrawal": on_withdrawal,
            "retired_at": None,
        }
        purpose = known.get(slug)
        if purpose is None:
            purpose = Purpose.objects.create(tenant=tenant, slug=slug, **wanted)
            changes.added.append(f"purpose {slug}")
        elif _update(purpose, wanted):
            changes.changed.append(f"purpose {slug}")
        found[slug] = purpose
        for number, notice in enumerate(_list(entry, "notices", at)):
            with _within(at):
                _load_notice(purpose, notice, f"/notices/{number}", changes, actor)
        if basis == Purpose.LawfulBasis.CONSENT and not purpose.notices.exists():
            raise ValidationError(
                "Nobody can consent without a notice: publish one.", pointer=f"{at}/notices"
            )
    for slug, purpose in known.items():
        if slug not in found and purpose.retired_at is None:
            Purpose.objects.filter(pk=purpose.pk).update(retired_at=RawSQL("consentful_now()", []))
            changes.retired.append(f"purpose {slug}")
    return found


def _load_notice(purpose: Purpose, entry: Any, at: str, changes: Changes, actor: Actor) -> None:
    entry = _object(entry, at, ("version", "locale", "text", "material"))
    version = _whole(entry, "version", at, most=2**31 - 1)
    if version is None:
        raise ValidationError("A notice has a version.", pointer=f"{at}/version")
    locale = _text(entry, "locale", at, most=35)
    is_material = entry.get("material", False)
    if not isinstance(is_material, bool):
        raise ValidationError("material is true or false.", pointer=f"{at}/material")
    is_new = not purpose.notices.filter(version=version, locale=locale).exists()
    publish_notice(
        purpose=purpose, version=version, locale=locale, text=_text(entry, "text", at, most=100_000),
        is_material=is_material, actor=actor,
    )  # fmt: skip
    if is_new:
        changes.added.append(f"notice {purpose.slug} {version} ({locale})")


def _load_definitions(
    tenant: Tenant, entries: list[Any], purposes: Mapping[str, Purpose], changes: Changes
) -> None:
    known = {definition.key: definition for definition in Definition.objects.filter(tenant=tenant)}
    found = set()
    kinds = [*KINDS, *scope_kinds()]
    for index, entry in enumerate(entries):
        at = f"/definitions/{index}"
        entry = _object(
            entry, at,
            ("key", "purpose", "schema", "default", "ttl_default", "ttl_max", "scopes", "writers",
             "description"),
        )  # fmt: skip
        with _within(at):
            key = check_key(entry.get("key"), creating=True)
        if key in found:
            raise ValidationError("This key stands twice.", pointer=f"{at}/key")
        found.add(key)
        slug = _choice(entry, "purpose", list(purposes), at)
        schema = canonical(entry.get("schema", True))
        default = entry.get("default")
        with _within(at):
            compiled = compile_schema(schema)
            if default is not None:
                check_default(compiled, default)
        ttl_default = _whole(entry, "ttl_default", at, most=10**12)
        ttl_max = _whole(entry, "ttl_max", at, most=10**12)
        if ttl_default and ttl_max and ttl_default > ttl_max:
            raise ValidationError("ttl_default lies beyond ttl_max.", pointer=f"{at}/ttl_default")
        wanted = {
            "purpose_id": purposes[slug].pk,
            "schema": schema,
            "default": None if default is None else canonical(default),
            "ttl_default": ttl_default,
            "ttl_max": ttl_max,
            "scopes": _choices({"scopes": ["user"], **entry}, "scopes", kinds, at),
            "writers": _choices({"writers": ["subject"], **entry}, "writers", Writer.values, at),
            "description": entry.get("description") or "",
            "retired_at": None,
        }
        if not isinstance(wanted["description"], str):
            raise ValidationError("This must be a text.", pointer=f"{at}/description")
        definition = known.get(key)
        if definition is None:
            Definition.objects.create(tenant=tenant, key=key, **wanted)
            changes.added.append(f"definition {key}")
        elif _update(definition, wanted):
            changes.changed.append(f"definition {key}")
    for key, definition in known.items():
        if key not in found and definition.retired_at is None:
            Definition.objects.filter(pk=definition.pk).update(
                retired_at=RawSQL("consentful_now()", [])
            )
            changes.retired.append(f"definition {key}")


def _load_undeclared(
    tenant: Tenant, entry: Any, purposes: Mapping[str, Purpose], changes: Changes
) -> None:
    kinds = [*KINDS, *scope_kinds()]
    entry = _object(entry, "/undeclared", kinds)
    known = {rule.kind: rule for rule in UndeclaredRule.objects.filter(tenant=tenant)}
    for kind in kinds:
        setting = entry.get(kind, False)
        if kind == "user" and setting is not False:
            setting = _choice(entry, kind, list(purposes), "/undeclared")
        elif not isinstance(setting, bool):
            raise ValidationError("This is true or false.", pointer=f"/undeclared/{kind}")
        wanted = {
            "is_allowed": setting is not False,
            "purpose_id": purposes[setting].pk if isinstance(setting, str) else None,
        }
        rule = known.get(kind)
        if rule is None:
            UndeclaredRule.objects.create(tenant=tenant, kind=kind, **wanted)
            if setting is not False:
                changes.added.append(f"undeclared {kind}")
        elif _update(rule, wanted):
            changes.changed.append(f"undeclared {kind}")


def _update(row: Any, wanted: Mapping[str, Any]) -> bool:
    """Write the columns that differ, if any."""
    differing = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if differing:
        type(row).objects.filter(pk=row.pk).update(**differing)
        for name, value in differing.items():
            setattr(row, name, value)
    return bool(differing)


@contextmanager
def _within(at: str) -> Iterator[None]:
    """Let a refusal point into the file, where its maker knows one entry alone."""
    try:
        yield
    except BadRequest as refusal:
        refusal.errors = tuple(
            replace(error, pointer=at + error.pointer) for error in refusal.errors
        )
        raise


def _object(value: Any, at: str, known: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValidationError("This must be an object.", pointer=at)
    check_members(value, known, at)
    return value


def _list(entry: Mapping[str, Any], name: str, at: str) -> list[Any]:
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValidationError("This must be a list.", pointer=f"{at}/{name}")
    return value


def _text(entry: Mapping[str, Any], name: str, at: str, *, most: int = 64) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValidationError(
            f"This must be a text of 1 to {most} characters.", pointer=f"{at}/{name}"
        )
    return value


def _whole(entry: Mapping[str, Any], name: str, at: str, *, most: int) -> int | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValidationError("This must be a whole number from 1.", pointer=f"{at}/{name}")
    return value


def _choice(entry: Mapping[str, Any], name: str, choices: list[str], at: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or value not in choices:
        raise ValidationError(f"This must be one of: {', '.join(choices)}.", pointer=f"{at}/{name}")
    return value


def _choices(entry: Mapping[str, Any], name: str, choices: list[str], at: str) -> list[str]:
    value = entry.get(name)
    if not isinstance(value, list) or not value or any(one not in choices for one in value):
        raise ValidationError(
            f"This must be a list of: {', '.join(choices)}.", pointer=f"{at}/{name}"
        )
    return list(dict.fromkeys(value))

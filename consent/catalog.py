"""The part of a catalogue that is about purposes: the one set of rules, for files and for forms."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.expressions import RawSQL

from audit.actors import Actor
from consent.models import Notice, Purpose
from consent.services import publish_notice
from tenants.entries import (
    read_choice,
    read_flag,
    read_list,
    read_object,
    read_text,
    read_whole,
    update_row,
    within,
)
from tenants.exceptions import NotFound, StaleRevision, ValidationError
from tenants.models import SLUG
from tenants.units import unit_of_work

MEMBERS = (
    "slug", "title", "lawful_basis", "notices", "on_withdrawal", "sharing", "double_opt_in",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PurposeChange:
    """What loading one purpose did."""

    purpose: Purpose
    is_added: bool
    is_changed: bool
    notices: Sequence[str]


def load_purpose(
    *,
    tenant_id: int,
    entry: Any,
    at: str,
    known: Purpose | None,
    actor: Actor,
    is_retired: bool = False,
) -> PurposeChange:
    """
    Bring one purpose to what its entry says. Inside a unit of work.

    Args:
        at: where the entry stands, for the pointers of refusals.
        known: the row of that slug, if there is one.

    Raises:
        ValidationError: a part is off; a published notice has another text.
    """
    entry = read_object(entry, at, MEMBERS)
    slug = read_text(entry, "slug", at)
    if not SLUG.regex.match(slug):  # type: ignore[union-attr]
        raise ValidationError(f"{SLUG.message}", pointer=f"{at}/slug")
    basis = read_choice(entry, "lawful_basis", Purpose.LawfulBasis.values, at)
    wanted: dict[str, Any] = {
        "title": read_text({"title": slug, **entry}, "title", at, most=200),
        "lawful_basis": basis,
        "on_withdrawal": read_choice(
            {"on_withdrawal": "keep", **entry}, "on_withdrawal", Purpose.OnWithdrawal.values, at
        ),
        # True or null: see the model.
        "is_sharing": read_flag(entry, "sharing", at) or None,
        "is_confirmed": read_flag(entry, "double_opt_in", at) or None,
        "retired_at": None,
    }
    if wanted["is_confirmed"] and basis != Purpose.LawfulBasis.CONSENT:
        raise ValidationError(
            "Only consent is confirmed: the basis is another.", pointer=f"{at}/double_opt_in"
        )
    if is_retired:
        wanted["retired_at"] = (known and known.retired_at) or RawSQL("consentful_now()", [])
    if known is None:
        purpose = Purpose.objects.create(tenant_id=tenant_id, slug=slug, **wanted)
        is_changed = False
    else:
        purpose, is_changed = known, update_row(known, wanted)
    with within(at):
        notices = [
            text
            for number, notice in enumerate(read_list(entry, "notices", ""))
            if (text := load_notice(purpose, notice, f"/notices/{number}", actor)) is not None
        ]
    if basis == Purpose.LawfulBasis.CONSENT and not (notices or purpose.notices.exists()):
        raise ValidationError(
            "Nobody can consent without a notice: publish one.", pointer=f"{at}/notices"
        )
    return PurposeChange(purpose, known is None, is_changed, notices)


def load_notice(purpose: Purpose, entry: Any, at: str, actor: Actor) -> str | None:
    """
    Publish what the entry of a notice says; return its name where it is new. Inside a unit.

    Raises:
        ValidationError: a part is off, or that version and locale has another text.
    """
    entry = read_object(entry, at, ("version", "locale", "text", "material"))
    version = read_whole(entry, "version", at, most=2**31 - 1)
    if version is None:
        raise ValidationError("A notice has a version.", pointer=f"{at}/version")
    locale = read_text(entry, "locale", at, most=35)
    is_material = read_flag(entry, "material", at)
    is_new = not purpose.notices.filter(version=version, locale=locale).exists()
    publish_notice(
        purpose=purpose, version=version, locale=locale,
        text=read_text(entry, "text", at, most=100_000), is_material=is_material, actor=actor,
    )  # fmt: skip
    return f"{purpose.slug} {version} ({locale})" if is_new else None


def save_purpose(
    *, tenant_id: int, entry: Any, revision: str | None, is_retired: bool, actor: Actor
) -> PurposeChange:
    """
    Create one purpose (without a revision), or change the version that the caller saw.

    Raises:
        ValidationError: a part is off, or a new one's slug is taken.
        StaleRevision: it changed since.
    """
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        slug = entry.get("slug")
        known = (
            Purpose.objects.select_for_update()
            .filter(tenant_id=tenant_id, slug=slug if isinstance(slug, str) else "")
            .first()
        )
        if revision is None and known is not None:
            raise ValidationError("There is a purpose of this slug already.", pointer="/slug")
        if revision is not None and (known is None or known.revision != revision):
            raise StaleRevision("Somebody changed this since you opened it. Nothing was saved.")
        return load_purpose(
            tenant_id=tenant_id, entry=entry, at="", known=known, actor=actor, is_retired=is_retired
        )


def save_notice(*, tenant_id: int, purpose_id: int, entry: Any, actor: Actor) -> Notice:
    """
    Publish one notice for good.

    Raises:
        NotFound: there is no such purpose.
        ValidationError: a part is off, or that version and locale was published before.
    """
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        purpose = (
            Purpose.objects.select_for_update().filter(tenant_id=tenant_id, pk=purpose_id).first()
        )
        if purpose is None:
            raise NotFound("There is no such purpose in this tenant.")
        if load_notice(purpose, entry, "", actor) is None:
            raise ValidationError(
                "This version was published in this language already.", pointer="/version"
            )
        return purpose.notices.get(version=entry["version"], locale=entry["locale"])

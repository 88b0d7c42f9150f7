"""A rule makes a benchmark of another one's items: their tasks, problems and what a check found stay as they are (NEEDS A18)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.annotations import overlays_of
from service.domain.benchmarks import BenchmarkHead, facet_summary
from service.domain.derivations import MOST_STRATA, Chosen, DeriveRequest, choose
from service.domain.errors import Invalid
from service.domain.evaluation_plans import Item
from service.domain.tasks import canonical_digest
from service.store import benchmark_cards, benchmarks, overlays
from service.store.catalogue import storable
from service.store.database import Tx
from service.store.evaluations import items
from service.store.overlays import Overlay
from service.store.rows import BenchmarkRow


@dataclass(frozen=True, slots=True)
class Derived:
    chosen: Chosen
    digest: str
    """Of the benchmark that it is, or would be."""
    row: BenchmarkRow | None
    """Null: only counted."""
    created: bool


async def derive(tx: Tx, parent: BenchmarkRow, wish: DeriveRequest) -> Derived:
    """Choose items by the rule, and make the benchmark unless it is to be counted only; the same again finds it.

    Raises NotFound ``overlay_not_found``, Invalid ``no_items``, ``too_many_strata``, ``unstorable_text``, Conflict
    ``benchmark_version_taken``.
    """
    storable(wish)
    laid = await overlays.named(tx, parent.project_id, overlays_of(wish.rule.names()))
    own = await items.of_benchmark(tx, parent.id)
    there = await overlays.laid_over(tx, own, laid)
    prices = await benchmark_cards.prices(tx, parent.id)
    # Hundreds of patterns over thousands of items take a while: other requests go on meanwhile.
    chosen = await asyncio.to_thread(choose, there, prices, wish.rule)
    if len(chosen.strata) > MOST_STRATA:
        raise Invalid(
            "too_many_strata", f"{len(chosen.strata)} strata; at most {MOST_STRATA}", strata=len(chosen.strata)
        )
    if not chosen.items and not wish.dry_run:
        raise Invalid("no_items", f"the rule lets none of {len(own)} items through", empty=chosen.empty[:100])
    head, derivation = _head(parent, wish), _derivation(parent, wish, laid)
    digest = _digest(head, chosen.items, derivation)
    if wish.dry_run:
        return Derived(chosen, digest, None, created=False)
    keys = {item.key for item in chosen.items}
    facets = facet_summary(item for item in own if item.key in keys)
    told = {**derivation, **counts(chosen)}
    row, created = await benchmarks.insert_derived(tx, parent, head, digest, facets, sorted(keys), told)
    return Derived(chosen, digest, row, created)


def counts(chosen: Chosen) -> dict[str, Any]:
    """Return what a rule met: {fitting, taken, strata: [{name, fitting, taken}], empty, useless}."""
    strata = [{"name": one.name, "fitting": one.fitting, "taken": one.taken} for one in chosen.strata]
    return {
        "fitting": chosen.fitting, "taken": len(chosen.items), "strata": strata, "empty": chosen.empty,
        "useless": chosen.useless,
    }  # fmt: skip


def _head(parent: BenchmarkRow, wish: DeriveRequest) -> BenchmarkHead:
    """Source, notice, deny list, canaries and groupings are the parent's: its reports and its rules hold for the part too."""
    changes = {"name": wish.name, "version": wish.version, "labels": dict(wish.labels)}
    policies = {} if wish.policies is None else {"policies": wish.policies}
    return parent.manifest.model_copy(update=changes | policies)


def _derivation(parent: BenchmarkRow, wish: DeriveRequest, laid: Sequence[Overlay]) -> dict[str, Any]:
    return {
        "parent": {"id": parent.id, "name": parent.name, "version": parent.version, "digest": parent.digest},
        "rule": wish.rule.model_dump(mode="json"),
        "overlays": [one.described() for one in laid],
    }


def _digest(head: BenchmarkHead, chosen: Sequence[Item], derivation: dict[str, Any]) -> str:
    """Ids are of one installation alone, and in no digest."""
    outline = [[item.key, item.digest, item.status] for item in chosen]
    overlaid = [[one["name"], one["digest"]] for one in derivation["overlays"]]
    rule = [derivation["parent"]["digest"], derivation["rule"], overlaid]
    return canonical_digest([head.model_dump(mode="json"), outline, rule])

"""A report: the evaluations' tables, read in one snapshot, and the figures over them, worked out beside the event loop."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from service.domain.annotations import overlays_in, overlays_of
from service.domain.benchmarks import Grouping, Policies
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.leaderboards import Leaderboard
from service.domain.reports import Report, ReportHeader, ReportKind, ReportSettings
from service.lifecycle.results.counting_rows import policies_of
from service.lifecycle.results.gathering import gather
from service.reporting.frames import Tables
from service.reporting.reports.leaderboard import jobbench_leaderboard
from service.reporting.reports.registry import build
from service.store import overlays
from service.store.database import Database, Tx
from service.store.result_tables.reading import QUERIES
from service.store.result_tables.scope import EvaluationHead, Scope, heads

OF_IMPORTER: Mapping[str, ReportKind] = {
    "jobbench": "jobbench",
    "rli": "rli",
    "payworthy": "payworthy",
    "freelance": "freelance",
}
"""Importer of the benchmark → the report of its paper."""
READ = tuple(name for name in QUERIES if name != "tool_calls")
"""Tables that reports read. How many tool calls there were is in table runs."""
COMPARISON: Literal["comparison"] = "comparison"
Kind = ReportKind | Literal["comparison"]


async def evaluations_of(tx: Tx, project_id: str, evaluation_ids: Sequence[str]) -> list[EvaluationHead]:
    """Return the evaluations. Raises NotFound, Conflict ``evaluation_not_started``."""
    found = await heads(tx, project_id, evaluation_ids)
    if len(found) != len(set(evaluation_ids)):
        raise NotFound("not_found")
    drafts = [head.id for head in found if head.state in ("draft", "checking")]
    if drafts:
        raise Conflict("evaluation_not_started", "what has not begun has no results", evaluations=drafts)
    return found


async def build_report(
    db: Database, project_id: str, evaluation_ids: Sequence[str], kind: ReportKind | None, settings: ReportSettings
) -> Report:
    """Return the report of the evaluations together.

    Raises NotFound, Conflict ``evaluation_not_started``, Invalid (settings that do not fit), TooLarge ``too_many_rows``.
    """
    found, tables = await read(db, project_id, evaluation_ids, settings)
    return await report_of(found, tables, kind, settings)


async def compare(db: Database, project_id: str, evaluation_ids: Sequence[str], settings: ReportSettings) -> Report:
    """Return the second evaluation beside the first. Raises as :func:`build_report`, Invalid ``two_evaluations``."""
    if len(evaluation_ids) != 2 or len(set(evaluation_ids)) != 2:
        raise Invalid("two_evaluations", "a comparison is of two evaluations")
    found, tables = await read(db, project_id, evaluation_ids, settings)
    return await report_of(found, tables, COMPARISON, settings)


async def leaderboard(
    db: Database, project_id: str, evaluation_ids: Sequence[str], settings: ReportSettings
) -> Leaderboard:
    """Return the agents' rows in the layout of JobBench's site. Raises as :func:`build_report`."""
    found, tables = await read(db, project_id, evaluation_ids, settings)
    return await asyncio.to_thread(jobbench_leaderboard, tables, header_of(found, tables, settings), settings)


async def report_of(
    found: Sequence[EvaluationHead], tables: Tables, kind: Kind | None, settings: ReportSettings
) -> Report:
    """Work the figures out, beside the event loop. Raises Invalid."""
    header = header_of(found, tables, settings)
    return await asyncio.to_thread(build, kind or kind_of(found), tables, header, settings)


async def read(
    db: Database,
    project_id: str,
    evaluation_ids: Sequence[str],
    settings: ReportSettings,
    *,
    hidden: bool = False,
    names: Sequence[str] = READ,
) -> tuple[list[EvaluationHead], Tables]:
    """Return the evaluations with their tables, all of one moment. ``hidden``: with what quotes hidden assets.

    Facets of annotations are those that the evaluations chose by or that the settings name: no later ones.
    Raises also NotFound ``overlay_not_found``.
    """
    async with db.snapshot() as tx:
        found = await evaluations_of(tx, project_id, evaluation_ids)
        named = [
            one.name for one in await overlays.named(tx, project_id, overlays_in(settings.model_dump(mode="json")))
        ]
        laid = tuple(sorted({*named, *(name for head in found for name in head.overlays)}))
        scope = Scope(project_id, tuple(head.id for head in found), hidden=hidden, overlays=laid)
        return found, await gather(tx, names, scope, policies_of(found))


def kind_of(found: Sequence[EvaluationHead]) -> ReportKind:
    """Return the report of the benchmark's paper; of several benchmarks, or of another one, the overview."""
    importers = {None if head.benchmark is None else head.benchmark.source.importer for head in found}
    return OF_IMPORTER.get(importers.pop() or "", "overview") if len(importers) == 1 else "overview"


def header_of(found: Sequence[EvaluationHead], tables: Tables, settings: ReportSettings) -> ReportHeader:
    first = found[0]
    names = [f"{head.benchmark.name}@{head.benchmark.version}" for head in found if head.benchmark is not None]
    notices = dict.fromkeys(head.benchmark.notice for head in found if head.benchmark is not None)
    own = [] if first.benchmark is None else first.benchmark.groupings
    laid = [Grouping(name=name, facet=name) for name in overlays_of([settings.grouping or ""])]
    return ReportHeader(
        title=" · ".join(dict.fromkeys(head.name for head in found)),
        benchmark=", ".join(dict.fromkeys(names)) or None,
        evaluations=[head.id for head in found],
        plan=", ".join(dict.fromkeys(head.plan for head in found)),
        policies=Policies() if first.benchmark is None else first.benchmark.policies,
        notice="\n\n".join(notice for notice in notices if notice),
        agents=tables["agents"].height,
        tasks=tables["tasks"].height,
        runs=tables["runs"].height,
        revision=first.revision if len(found) == 1 else None,
        seed=first.seed,
        groupings=[*own, *laid],
        settings=settings,
    )

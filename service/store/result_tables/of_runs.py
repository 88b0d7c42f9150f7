"""Tables runs, attempts, exclusions, agents, tasks."""

from typing import Any

from sqlalchemy import Boolean, Date, Select, and_, case, cast, func, or_, select
from sqlalchemy.dialects.postgresql import distinct_on

from service.store.overlays import facets_with
from service.store.result_tables.columns import json_text, list_text, number, untyped
from service.store.result_tables.scope import Scope, scoped_runs
from service.store.tables import agents, attempts, runs, scaffolds, tasks
from service.store.tables_benchmarks import benchmark_items
from service.store.tables_evaluations import evaluation_agents, evaluation_tasks, evaluations, run_invalidations
from service.store.tables_models import models

_LOOPS = ("computer_use", "tool_agent", "single_response")
_OUTSIDE = ("remote", "person", "external")
FACTS = ("phase", "outcome", "ended_because", "flags", "score", "max_score")
"""What decides whether a run counts, as columns ``fact_*`` of tables runs and exclusions."""


def _facts() -> list[Any]:
    return [runs.c[name].label(f"fact_{name}") for name in FACTS]


def runs_query(scope: Scope) -> Select[Any]:
    """Return the statement; ``counted`` and ``exclusion`` follow from its columns ``fact_*``."""
    c = runs.c
    wall = func.greatest(0.0, c.wall_s - c.provider_wait_s - c.waited_for_host_s)
    same = (
        "evaluation_id", "task_id", "agent_id", "sample", "derived_from", "phase", "outcome", "ended_because", "plan",
        "verdict_state", "score", "max_score", "deliverable_files", "deliverable_bytes", "deliverable_problems",
        "queue_s", "provision_s", "wall_s", "provider_wait_s", "turns", "tool_calls", "requests", "input_tokens",
        "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "cost_basis", "created_at",
        "started_at", "ended_at", "graded_at",
    )  # fmt: skip
    return untyped(
        select(
            c.id.label("run_id"),
            *(c[name] for name in same),
            c.attempt.label("attempts"),
            list_text(c.flags).label("flags"),
            (c.score / func.nullif(c.max_score, 0.0)).label("fraction"),
            c.deliverable_digest,
            wall.label("working_s"),
            c.event_count.label("events"),
            *(number(c[name]).label(name) for name in ("cost_usd", "service_cost_usd", "cost_usd_all_attempts")),
            json_text(c.labels).label("labels"),
            *_facts(),
        )
        .where(c.id.in_(scoped_runs(scope)))
        .order_by(c.id)
    )


def exclusions_query(scope: Scope) -> Select[Any]:
    """Return the statement of all runs with who invalidated them; those that count are left out by their facts."""
    c, v = runs.c, run_invalidations.c
    return untyped(
        select(
            c.id.label("run_id"), c.evaluation_id, c.task_id, c.agent_id,
            v.reason, v.author, v.created_at.label("at"), *_facts(),
        )
        .outerjoin(run_invalidations, and_(v.run_id == c.id, v.revoked_at.is_(None)))
        .where(c.id.in_(scoped_runs(scope)))
        .order_by(c.id)
    )  # fmt: skip


def attempts_query(scope: Scope) -> Select[Any]:
    c = attempts.c
    said = c.provenance
    return untyped(
        select(
            c.run_id, c.n.label("attempt"), c.state, c.host_id.label("host"), c.runtime, c.environment_image,
            c.kit_image, c.ended_because,
            said["template"].astext.label("prompt_template_sha256"), said["prompt"].astext.label("prompt_sha256"),
            said["effort"].astext.label("effort"), c.created_at, c.started_at, c.ended_at,
        )
        .where(c.run_id.in_(scoped_runs(scope)))
        .order_by(c.run_id, c.n)
    )  # fmt: skip


def agents_query(scope: Scope) -> Select[Any]:
    """Agents of the runs, and those of the evaluations that have none yet."""
    c, s, spec = agents.c, scaffolds.c, models.c.spec
    wanted = [c.id.in_(select(runs.c.agent_id).where(runs.c.id.in_(scoped_runs(scope))))]
    if scope.evaluation_ids:
        members = select(evaluation_agents.c.agent_id).join(evaluations)
        mine = (evaluations.c.id.in_(scope.evaluation_ids), evaluations.c.project_id == scope.project_id)
        wanted.append(c.id.in_(members.where(*mine)))
    kind = s.manifest["kind"].astext
    driver = case((kind.in_(_LOOPS), "loop"), (kind.in_(_OUTSIDE), kind), else_="kit")
    the_model = and_(models.c.project_id == c.project_id, models.c.name == c.spec["model"].astext)
    return untyped(
        select(
            c.id.label("agent_id"), c.label, c.digest, (s.name + "@" + s.version).label("scaffold"),
            kind.label("kind"), driver.label("driver"), c.spec["model"].astext.label("model"),
            spec["provider"].astext.label("provider"), spec["vendor"].astext.label("vendor"),
            spec["family"].astext.label("family"), cast(spec["released_on"].astext, Date).label("released_on"),
            cast(spec["alias"].astext, Boolean).label("alias"),
            func.nullif(c.spec["settings"]["effort"].astext, "default").label("effort"),
            json_text(c.spec["settings"]).label("settings"),
        )
        .join(scaffolds, s.id == c.scaffold_id)
        .outerjoin(models, the_model)
        .where(c.project_id == scope.project_id, or_(*wanted))
        .order_by(c.id)
    )  # fmt: skip


def tasks_query(scope: Scope) -> Select[Any]:
    """Tasks of the runs, and those of the evaluations that have none yet."""
    c, price = tasks.c, tasks.c.manifest["price"]
    wanted = [c.id.in_(select(runs.c.task_id).where(runs.c.id.in_(scoped_runs(scope))))]
    if scope.evaluation_ids:
        members = select(evaluation_tasks.c.task_id).join(evaluations)
        mine = (evaluations.c.id.in_(scope.evaluation_ids), evaluations.c.project_id == scope.project_id)
        wanted.append(c.id.in_(members.where(*mine)))
    item = _items(scope).subquery()
    return untyped(
        select(
            c.id.label("task_id"), c.name, c.digest, item.c.item_key, item.c.status, item.c.check,
            json_text(facets_with(scope.overlays)).label("facets"),
            number(price["usd"].astext).label("price_usd"), price["basis"].astext.label("price_basis"),
            number(c.manifest["human_time_s"].astext).label("human_time_s"),
        )
        .outerjoin(item, item.c.task_id == c.id)
        .where(c.project_id == scope.project_id, or_(*wanted))
        .order_by(c.id)
    )  # fmt: skip


def _items(scope: Scope) -> Select[Any]:
    """One item for each task: of the benchmark that is meant, where a task is in several of the first evaluation's."""
    i = benchmark_items.c
    mine = select(evaluations.c.benchmark_id).where(
        evaluations.c.id.in_(scope.evaluation_ids), evaluations.c.project_id == scope.project_id
    )
    which = i.benchmark_id == scope.benchmark_id if scope.benchmark_id is not None else i.benchmark_id.in_(mine)
    return untyped(
        select(i.task_id, i.key.label("item_key"), i.status, i.checked["state"].astext.label("check"))
        .ext(distinct_on(i.task_id))
        .where(i.task_id.is_not(None), which)
        .order_by(i.task_id, i.benchmark_id, i.position)
    )

"""Tables verdicts, criteria, votes, ratings, preferences."""

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on

from service.domain.ratings import ACCEPTABLE
from service.domain.verdicts import HIDDEN_DETAIL, VerdictState
from service.store.result_tables.columns import json_text, number, untyped
from service.store.result_tables.scope import Scope, scoped_runs
from service.store.reviews import OVERRIDE
from service.store.tables import grading_criteria, gradings, runs
from service.store.tables_campaigns import campaign_items, campaigns, preferences, raters, rating_assignments
from service.store.tables_grading import verdict_reviews, votes
from service.store.tables_models import model_requests

_PAIRS = "pairwise"
_SUBMITTED = "submitted"
_LABELS = ("failure_reason", "choice", "completion", "quality", "shown")


def mine(scope: Scope) -> Select[Any]:
    """Return the statement of the ids of the gradings of the scope's runs."""
    return select(gradings.c.id).where(gradings.c.run_id.in_(scoped_runs(scope)))


def _shown(detail: ColumnElement[Any], scope: Scope) -> ColumnElement[Any]:
    """Return a detail without the keys that quote hidden assets, for those who may not read them."""
    for key in () if scope.hidden else sorted(HIDDEN_DETAIL):
        detail = detail.op("-", return_type=JSONB())(literal(key, Text))
    return detail


def _overrides(scope: Scope) -> Subquery:
    """The newest standing override of each grading."""
    r = verdict_reviews.c
    return (
        select(r.grading_id, r.score, r.max_score)
        .ext(distinct_on(r.grading_id))
        .where(r.run_id.in_(scoped_runs(scope)), r.kind == OVERRIDE, r.withdrawn_at.is_(None))
        .order_by(r.grading_id, r.created_at.desc(), r.id.desc())
        .subquery()
    )


def verdicts_query(scope: Scope) -> Select[Any]:
    g, said = gradings.c, _overrides(scope)
    paid = (
        select(model_requests.c.subject, number(func.sum(model_requests.c.cost_usd)).label("usd"))
        .where(model_requests.c.subject.in_(mine(scope)))
        .group_by(model_requests.c.subject)
        .subquery()
    )
    overridden = said.c.grading_id.is_not(None)
    return untyped(
        select(
            g.id.label("grading_id"), g.run_id, g.method, g.method_version, g.settings_digest, g.plan, g.primary,
            g.round,
            case((overridden, VerdictState.GRADED.value), else_=g.state).label("state"),
            func.coalesce(said.c.score, g.score).label("score"),
            func.coalesce(said.c.max_score, g.max_score).label("max_score"),
            g.cause, overridden.label("overridden"), paid.c.usd.label("cost_usd"),
            json_text(_shown(g.detail, scope)).label("detail"), g.graded_at,
        )
        .outerjoin(said, said.c.grading_id == g.id)
        .outerjoin(paid, paid.c.subject == g.id)
        .where(g.run_id.in_(scoped_runs(scope)))
        .order_by(g.id)
    )  # fmt: skip


def criteria_query(scope: Scope) -> Select[Any]:
    c, g = grading_criteria.c, gradings.c
    cause = func.jsonb_strip_nulls(func.jsonb_build_object("cause", c.cause))
    detail = _shown(c.detail, scope).op("||", return_type=JSONB())(cause)
    return untyped(
        select(
            c.grading_id, g.run_id, c.position, c.criterion, c.passed, c.score, c.max_score,
            json_text(detail).label("detail"),
        )
        .join(gradings, g.id == c.grading_id)
        .where(g.run_id.in_(scoped_runs(scope)))
        .order_by(c.grading_id, c.position)
    )  # fmt: skip


def _labels(content: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return of a judge's answer what quotes nothing: its decisions, without its words."""
    each = func.jsonb_each(content).table_valued("key", "value", name="answer")
    plain = or_(func.jsonb_typeof(each.c.value) == "boolean", each.c.key.in_(_LABELS))
    kept = select(func.jsonb_object_agg(each.c.key, each.c.value)).select_from(each).where(plain).scalar_subquery()
    return func.coalesce(kept, func.jsonb_build_object())


def votes_query(scope: Scope) -> Select[Any]:
    v, g = votes.c, gradings.c
    content = json_text(v.content if scope.hidden else _labels(v.content))
    usage = {name: cast(v.usage[name].astext, Integer).label(name) for name in ("input_tokens", "output_tokens")}
    return untyped(
        select(
            v.grading_id, g.run_id, v.judge, v.item, v.n, v.state, v.cause, v.asks, v.model, v.template,
            v.template_sha256, v.rendered_sha256, content.label("content"), *usage.values(), v.took_s, v.created_at,
        )
        .join(gradings, g.id == v.grading_id)
        .where(g.run_id.in_(scoped_runs(scope)))
        .order_by(v.grading_id, v.judge, v.item, v.n)
    )  # fmt: skip


def ratings_query(scope: Scope) -> Select[Any]:
    a, i, r = rating_assignments.c, campaign_items.c, raters.c
    said = a.rating
    stars = cast(said["rating"].astext, Integer)
    wanted = scoped_runs(scope)
    return untyped(
        select(
            a.id.label("rating_id"), a.campaign_id, campaigns.c.form, a.item_id, i.task_id, i.run_id, i.other_run_id,
            r.pseudonym.label("rater"), r.judge.is_not(None).label("by_model"), a.purpose, stars.label("rating"),
            (stars >= ACCEPTABLE).label("accept"), cast(said["failed_early"].astext, Boolean).label("failed_early"),
            said["completion"].astext.label("completion"), said["quality"].astext.label("quality"),
            json_text(func.coalesce(said["tags"], func.jsonb_build_array())).label("tags"),
            func.nullif(said["reason"].astext, "").label("reason"), a.swapped, a.active_s, a.instruction_version,
            a.submitted_at,
        )
        .join(campaign_items, i.id == a.item_id)
        .join(campaigns, campaigns.c.id == a.campaign_id)
        .join(raters, r.id == a.rater_id)
        .where(
            a.project_id == scope.project_id, a.state == _SUBMITTED, or_(i.run_id.in_(wanted), i.other_run_id.in_(wanted))
        )
        .order_by(a.id)
    )  # fmt: skip


def preferences_query(scope: Scope) -> Select[Any]:
    """What people prefer in campaigns, and what judges prefer (method ``pairwise``, always against the reference)."""
    p, g, wanted = preferences.c, gradings.c, scoped_runs(scope)
    people = select(
        p.id.label("preference_id"), literal("people", Text).label("source"), p.campaign_id, p.task_id, p.first_run_id,
        p.second_run_id, p.first_agent_id, p.second_agent_id, p.value, p.combination,
        json_text(p.choices).label("choices"), p.created_at,
    ).where(p.project_id == scope.project_id, or_(p.first_run_id.in_(wanted), p.second_run_id.in_(wanted)))  # fmt: skip
    none = cast(null(), Text)
    judges = (
        select(
            g.id, literal("judges", Text), none, runs.c.task_id, g.run_id, none, runs.c.agent_id, none, g.score,
            func.coalesce(g.detail["combination"].astext, "rule"),
            json_text(func.coalesce(g.detail["judges"], func.jsonb_build_array())), g.graded_at,
        )
        .join(runs, runs.c.id == g.run_id)
        .where(and_(g.method == _PAIRS, g.state == VerdictState.GRADED, g.run_id.in_(wanted)))
    )  # fmt: skip
    return untyped(union_all(people, judges).order_by("preference_id"))

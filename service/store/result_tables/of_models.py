"""Tables model_requests, tool_calls."""

from typing import Any

from sqlalchemy import (
    Select,
    Text,
    and_,
    case,
    cast,
    extract,
    false,
    func,
    null,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from service.domain.events import EventType
from service.store.result_tables.columns import json_text, number, untyped
from service.store.result_tables.of_grading import mine
from service.store.result_tables.scope import Scope, scoped_runs
from service.store.tables import gradings, run_events
from service.store.tables_models import model_requests, models

_NAME_CHARS = 200


def model_requests_query(scope: Scope) -> Select[Any]:
    """Requests of the runs, and those of judges of their deliverables."""
    c, g = model_requests.c, gradings.c
    own = _requests(c.run_id, cast(null(), Text)).where(c.run_id.in_(scoped_runs(scope)))
    judged = _requests(g.run_id, g.id).join(gradings, g.id == c.subject)
    judged = judged.where(c.run_id.is_(None), c.subject.in_(mine(scope)))
    return untyped(union_all(own, judged).order_by("request_id"))


def _requests(run_id: Any, grading_id: Any) -> Select[Any]:
    c = model_requests.c
    same = (
        "requested_model", "reported_model", "state", "status", "error", "provider_error", "tries", "input_tokens",
        "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "usage_known",
    )  # fmt: skip
    return untyped(select(
        c.id.label("request_id"), run_id.label("run_id"), c.attempt, c.n, c.purpose, grading_id.label("grading_id"),
        models.c.name.label("model"), c.provider, *(c[name] for name in same), number(c.cost_usd).label("cost_usd"),
        c.cost_basis, json_text(c.server_tools).label("server_tools"), c.finish_reason, c.first_token_s, c.total_s,
        c.wait_s, c.created_at,
    ).select_from(model_requests).outerjoin(models, models.c.id == c.model_id))  # fmt: skip


def tool_calls_query(scope: Scope) -> Select[Any]:
    """Calls, each with the first result of its id that came after it. What tools say of themselves is anybody's word."""
    e, wanted = run_events.c, scoped_runs(scope)
    id_ = e.payload["id"].astext
    results = (
        select(e.run_id, e.attempt, id_.label("call_id"), e.seq, e.ts, e.payload["is_error"].astext.label("is_error"))
        .where(e.run_id.in_(wanted), e.type == EventType.TOOL_RESULT, id_.is_not(None))
        .subquery()
    )
    r = results.c
    same_call = and_(r.run_id == e.run_id, r.attempt == e.attempt, r.call_id == id_, r.seq > e.seq)
    took = extract("epoch", r.ts - e.ts)
    return untyped(
        select(
            e.run_id, e.seq, e.attempt, func.left(id_, _NAME_CHARS).label("call_id"),
            func.left(e.payload["name"].astext, _NAME_CHARS).label("name"), e.ts.label("at"),
            r.seq.label("result_seq"),
            case((r.is_error == "true", true()), (r.is_error == "false", false())).label("is_error"), number(took).label("took_s"),
        )
        .ext(distinct_on(e.run_id, e.seq))
        .outerjoin(results, same_call)
        .where(e.run_id.in_(wanted), e.type == EventType.TOOL_CALL)
        .order_by(e.run_id, e.seq, r.seq)
    )  # fmt: skip

"""Table forecasts: what was forecast of the scope's tasks, of its agents or of none in particular."""

from typing import Any

from sqlalchemy import Select, case, func, null, select

from service.store.result_tables.columns import json_text, number
from service.store.result_tables.scope import Scope, scoped_runs
from service.store.tables import runs
from service.store.tables_forecasts import forecast_sets, forecasts

_SAME = (
    "set_id", "task_id", "forecaster", "prompt", "variant", "with_reason", "system", "model", "reported_model",
    "source", "state", "p_hat", "context_dependence", "verifiability", "autonomy_horizon", "tool_credential_surface",
    "deliverable_modality", "reason", "asks", "cause", "template_sha256", "rendered_sha256", "declared_at",
)  # fmt: skip


def forecasts_query(scope: Scope) -> Select[Any]:
    """A forecast came before the attempt if it was recorded before any run of the agent on the task began."""
    f, s = forecasts.c, forecast_sets.c
    wanted = select(runs.c.task_id, runs.c.agent_id).where(runs.c.id.in_(scoped_runs(scope))).distinct().subquery()
    began = (
        select(runs.c.task_id, runs.c.agent_id, func.min(runs.c.started_at).label("at"))
        .where(runs.c.project_id == scope.project_id, runs.c.started_at.is_not(None))
        .group_by(runs.c.task_id, runs.c.agent_id)
        .subquery()
    )
    before = case((began.c.at.is_(None), null()), else_=f.created_at < began.c.at)
    return (
        select(
            f.id.label("forecast_id"), s.name.label("set_name"), s.agent_id, *(f[name] for name in _SAME),
            json_text(f.usage).label("usage"), number(f.cost_usd).label("cost_usd"), f.created_at.label("made_at"),
            began.c.at.label("first_attempt_at"), before.label("made_before_attempt"),
        )
        .join(forecast_sets, s.id == f.set_id)
        .outerjoin(began, (began.c.task_id == f.task_id) & (began.c.agent_id == s.agent_id))
        .where(
            f.project_id == scope.project_id,
            f.task_id.in_(select(wanted.c.task_id)),
            s.agent_id.is_(None) | s.agent_id.in_(select(wanted.c.agent_id)),
        )
        .order_by(f.set_id, f.forecaster, f.prompt, f.task_id)
    )  # fmt: skip

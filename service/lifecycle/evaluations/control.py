"""What people change about an evaluation that is under way: settings, holds, releases; each with its author in the log (NEEDS B9)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from service.domain.errors import Conflict, Invalid
from service.domain.evaluations import Concurrency, EvaluationBudget, EvaluationState, Reference, StopRules
from service.domain.tasks import LABELS, Name, Strict
from service.domain.webhooks import HookEvent
from service.store.announcements import announce
from service.store.database import Tx
from service.store.evaluations import control, evaluations
from service.store.notifications import QUEUE
from service.store.phases import notify
from service.store.rows import Json
from service.store.rows_evaluations import EvaluationRow

_MERGED: Mapping[str, type[Strict]] = {
    "concurrency": Concurrency, "budget": EvaluationBudget, "stop_rules": StopRules,
}  # fmt: skip


class EvaluationChange(Strict):
    """What is left out stays as it is, also within ``concurrency``, ``budget`` and ``stop_rules``; null takes a limit away."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = "-"
    labels: LABELS = Field(default_factory=dict[str, str])
    notes: Annotated[str, Field(max_length=10_000)] = ""
    concurrency: Concurrency = Field(default_factory=Concurrency)
    priority: int = Field(default=0, ge=-100, le=100)
    """Also of the runs that have not begun."""
    budget: EvaluationBudget = Field(default_factory=EvaluationBudget)
    stop_rules: StopRules = Field(default_factory=StopRules)


class Which(Strict):
    """Neither: the whole evaluation. ``agent`` is an id or a label; ``model`` means every agent that has it."""

    agent: Reference | None = None
    model: Name | None = None


class HoldRequest(Which):
    reason: Annotated[str, Field(max_length=1_000)] = ""


async def change(tx: Tx, row: EvaluationRow, actor: str, body: EvaluationChange) -> EvaluationRow:
    """Write what is given, and note what it was before. Raises Invalid("not_in_evaluation")."""
    given = body.model_dump(mode="json", exclude_unset=True)
    if not given:
        return row
    columns: dict[str, Any] = {name: _merged(row, name, value) for name, value in given.items()}
    if "concurrency" in columns:
        await _check_concurrency(tx, row, columns["concurrency"])
    if "priority" in columns:
        await control.set_priority(tx, row.id, columns["priority"])
    changed = await evaluations.change(tx, row.id, **columns)
    detail = {name: {"from": _plain(row, name), "to": value} for name, value in columns.items()}
    await evaluations.note(tx, row.id, actor, "change", detail)
    await notify(tx, QUEUE, row.id)
    return changed


def _plain(row: EvaluationRow, name: str) -> Any:
    value = getattr(row, name)
    return value.model_dump(mode="json") if isinstance(value, Strict) else value


def _merged(row: EvaluationRow, name: str, value: Any) -> Any:
    """Return the column; part of a setting is laid over what it is now, and the whole must make sense."""
    if name not in _MERGED:
        return value
    return _MERGED[name].model_validate(_plain(row, name) | value).model_dump(mode="json")


async def _check_concurrency(tx: Tx, row: EvaluationRow, wanted: Json) -> None:
    parts = await control.parts(tx, row.id)
    known: dict[str, set[str | None]] = {
        "agents": {p["agent_id"] for p in parts} | {p["label"] for p in parts},
        "models": {p["model"] for p in parts},
        "providers": {p["provider"] for p in parts},
    }
    for kind, names in known.items():
        unknown = sorted(set(wanted[kind]) - names)
        if unknown:
            raise Invalid(
                "not_in_evaluation",
                f"none of its {kind} is {unknown[0]!r}",
                known=sorted(name for name in names if name),
            )


async def hold(tx: Tx, row: EvaluationRow, actor: str, body: HoldRequest) -> EvaluationRow:
    """Let nothing more of it begin; what runs goes on. May be repeated. Raises Conflict, Invalid("not_in_evaluation")."""
    _check_started(row)
    ids = await _agents(tx, row, body)
    reason = control.EVALUATION_HELD if ids is None else control.AGENT_HELD
    words = f": {body.reason}" if body.reason else ""
    detail = f"{'the evaluation' if ids is None else 'its agent in this evaluation'} is held by a person{words}"
    changed = await control.hold(tx, row.id, reason, detail, agent_ids=ids, by=actor)
    await note_hold(tx, changed, actor, {"reason": reason, "detail": detail, "agents": ids, "model": body.model})
    return changed


async def release(tx: Tx, row: EvaluationRow, actor: str, body: Which) -> EvaluationRow:
    """Let runs begin again; stop rules look at what ends from now on. May be repeated. Raises as :func:`hold`."""
    _check_started(row)
    ids = await _agents(tx, row, body)
    changed = await control.release(tx, row.id, agent_ids=ids)
    await evaluations.note(tx, row.id, actor, "release", {"agents": ids, "model": body.model})
    return changed


async def note_hold(tx: Tx, row: EvaluationRow, actor: str, detail: Json) -> None:
    """Write the log and tell the project's webhooks."""
    await evaluations.note(tx, row.id, actor, "hold", detail)
    await announce(tx, row.project_id, HookEvent.EVALUATION_HELD, {**compact(row), "hold": detail}, row.labels)


def compact(row: EvaluationRow) -> Json:
    """Return what webhooks are told of an evaluation."""
    names = ("id", "name", "state", "revision", "total", "counts", "spend", "labels")
    return {name: getattr(row, name) for name in names}


def _check_started(row: EvaluationRow) -> None:
    if row.state is EvaluationState.DRAFT:
        raise Conflict("evaluation_not_started", "the evaluation is a draft: nothing of it can begin")


async def _agents(tx: Tx, row: EvaluationRow, which: Which) -> list[str] | None:
    """Return the ids that are meant; null: the whole."""
    if which.agent is None and which.model is None:
        return None
    found = [p["agent_id"] for p in await control.parts(tx, row.id) if _meant(p, which)]
    if not found:
        raise Invalid("not_in_evaluation", f"no agent of the evaluation is {which.agent or which.model!r}")
    return found


def _meant(part: Mapping[Any, Any], which: Which) -> bool:
    named = which.agent is None or which.agent in (part["agent_id"], part["label"])
    return named and which.model in (None, part["model"])

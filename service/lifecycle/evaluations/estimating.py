"""What an evaluation will take, and what that rests on (NEEDS B2). What is not known is null, never 0.

Sums of runs are taken as normally distributed (``service.domain.sums``); the finish is their hours over the slots that there
are now, and no sooner than concurrency limits let it be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.domain.evaluations import Concurrency
from service.domain.grading_plans import PlanSpec
from service.domain.run_states import Flag
from service.domain.sums import Total, together, total
from service.domain.tasks import TaskManifest
from service.lifecycle.estimates import Estimator, money
from service.lifecycle.evaluations.fitting import Member, Templates
from service.store import capacity, clock, projects
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.evaluations import history
from service.store.evaluations.history import Past, Sample
from service.store.regrades import Candidate

ASSUMED_BYTES = 20_000
"""Of a deliverable, where none of the agents has made one yet."""
_APART = (
    Flag.CONTROL, Flag.PREFLIGHT, Flag.REPLAYED, Flag.ASSISTED, Flag.EXTERNAL, Flag.POLICY_CHANGED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    benchmark: str | None
    """Name, of whatever version; null: tasks without one."""
    plan: PlanSpec
    manifests: Mapping[str, TaskManifest]
    concurrency: Concurrency


@dataclass(frozen=True, slots=True)
class _Part:
    """One agent's share."""

    member: Member
    runs: int
    basis: str
    """history (of this benchmark) | agent (of other tasks) | none"""
    past: Past | None
    usd: Total | None
    seconds: Total | None

    def view(self) -> dict[str, Any]:
        return {
            "id": self.member.id,
            "label": self.member.label,
            "runs": self.runs,
            "basis": self.basis,
            "n": 0 if self.past is None else self.past.runs,
            "agents_usd": _dollars(self.usd),
            "run_hours": _range(_hours(self.seconds)),
        }


async def estimate(
    tx: Tx, blobs: BlobStore, project_id: str, asked: Question, members: Sequence[Member], templates: Templates
) -> dict[str, Any]:
    """Return the estimate of all runs, as it is kept and shown."""
    parts = await _parts(tx, project_id, asked, members)
    runs = sum(part.runs for part in parts)
    seconds, usd = _sum([p.seconds for p in parts]), _sum([p.usd for p in parts])
    slots = await _slots(tx, project_id, asked.concurrency, runs)
    size = _mean_bytes(parts)
    largest = max((run.limits.disk_bytes for run in templates.values()), default=0)
    return {
        "runs": runs,
        "tasks": len(asked.manifests),
        "agents_usd": _dollars(usd),
        "run_hours": _range(_hours(seconds)),
        "slots": slots,
        "finish_s": _range(_finish(parts, seconds, slots, asked.concurrency)),
        "disk_bytes": {"live": slots * largest, "kept": None if size is None else round(runs * size)},
        "agents": [part.view() for part in parts],
        **await _judges(tx, blobs, project_id, asked, runs, size),
        "at": (await clock.now(tx)).isoformat(),
    }


async def _parts(tx: Tx, project_id: str, asked: Question, members: Sequence[Member]) -> list[_Part]:
    ids = [one.id for one in members]
    apart = [str(flag) for flag in _APART]
    here = await history.past(tx, project_id, ids, asked.benchmark, apart) if asked.benchmark else {}
    rest = [one for one in ids if one not in here]
    anywhere = await history.past(tx, project_id, rest, None, apart) if rest else {}
    return [_part(one, here.get(one.id), anywhere.get(one.id), len(asked.manifests)) for one in members]


def _part(member: Member, here: Past | None, anywhere: Past | None, tasks: int) -> _Part:
    past = here or anywhere
    basis = "history" if here else "agent" if anywhere else "none"
    runs = member.samples * tasks
    usd = _total(runs, past.usd) if past else None
    if not member.doer.models:
        usd = Total()  # nobody is asked: whatever it takes, no model is paid
    return _Part(member, runs, basis, past, usd, _total(runs, past.seconds) if past else None)


def _total(runs: int, sample: Sample) -> Total | None:
    return None if sample.mean is None else total(runs, sample.n, sample.mean, sample.variance)


def _sum(totals: Sequence[Total | None]) -> Total | None:
    known = [one for one in totals if one is not None]
    return together(known) if len(known) == len(totals) else None


async def _slots(tx: Tx, project_id: str, limits: Concurrency, runs: int) -> int:
    """Return how many runs may be live at once, as hosts, project and limits are now."""
    rooms = [one for one in await capacity.of_all(tx) if one.takes_runs]
    there = sum(one.slots if one.slots_limit is None else min(one.slots, one.slots_limit) for one in rooms)
    project = await projects.get(tx, project_id)
    most = (project.max_runs if project else None, limits.total)
    return min([there, runs, *(limit for limit in most if limit is not None)])


def _finish(parts: Sequence[_Part], seconds: Total | None, slots: int, limits: Concurrency) -> Total | None:
    if seconds is None or not slots:
        return None
    found = [seconds.over(slots)]
    for part in parts:
        own = limits.agents.get(part.member.id, limits.agents.get(part.member.label, limits.per_agent))
        if own == 0:
            return None
        if own is not None and part.seconds is not None:
            found.append(part.seconds.over(own))
    return max(found, key=lambda one: one.mean)


def _mean_bytes(parts: Sequence[_Part]) -> float | None:
    sizes = [(p.runs, p.past.bytes) for p in parts if p.past is not None and p.past.bytes is not None]
    weight = sum(runs for runs, _ in sizes)
    return sum(runs * size for runs, size in sizes) / weight if weight else None


async def _judges(
    tx: Tx, blobs: BlobStore, project_id: str, asked: Question, runs: int, size: float | None
) -> dict[str, Any]:
    """Every task is estimated once; each has as many runs. The doubt of a judge's price is the same for all of them."""
    wanted = [_candidate(one, round(ASSUMED_BYTES if size is None else size)) for one in asked.manifests]
    found = await Estimator(tx, blobs, project_id, asked.plan, asked.manifests).estimate(wanted)
    times = runs / len(wanted) if wanted else 0
    usd = None
    if found["cost_usd"] is not None:
        p50, p90 = (float(found["cost_usd"][name]) * times for name in ("p50", "p90"))
        usd = {"p10": _money(max(0.0, 2 * p50 - p90)), "p50": _money(p50), "p90": _money(p90)}
    judges = {"calls": round(found["judge_calls"] * times), "basis": found["basis"]}
    return {"judges_usd": usd, "judges": judges, "people_gradings": round(found["people_gradings"] * times)}


def _candidate(task_id: str, size_bytes: int) -> Candidate:
    return Candidate(f"planned {task_id}", task_id, "", size_bytes, "", None, "")


def _hours(seconds: Total | None) -> Total | None:
    return None if seconds is None else seconds.over(3600)


def _range(of: Total | None) -> dict[str, float] | None:
    return None if of is None else {"p10": _round(of.p10), "p50": _round(of.p50), "p90": _round(of.p90)}


def _dollars(of: Total | None) -> dict[str, str] | None:
    return None if of is None else {"p10": _money(of.p10), "p50": _money(of.p50), "p90": _money(of.p90)}


def _money(usd: float) -> str:
    return money(Decimal(usd))


def _round(value: float) -> float:
    return float(f"{value:.6g}")

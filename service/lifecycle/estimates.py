"""What grading a set of runs under a plan will take, before anybody is asked. What is not known is null, never 0."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, BinaryIO

from service.domain.errors import NotFound
from service.domain.evidence import VERSION as EVIDENCE_VERSION
from service.domain.grading_plans import PlanSpec, specs_for
from service.domain.judging import JudgeSpec
from service.domain.models import ModelSpec, TokenUsage
from service.domain.sums import ASSUMED_SPREAD, Z_90
from service.domain.tasks import GraderSpec, TaskManifest
from service.graders import sizes
from service.graders.contract import GraderFault
from service.graders.judging.settings import JudgingSettings
from service.graders.registry import grader_for
from service.models.pricing import cost_of
from service.store import judge_figures, models
from service.store.blobs import BlobStore
from service.store.database import Tx
from service.store.judge_figures import JudgeVotes, RunVotes
from service.store.regrades import Candidate

CHARS_PER_TOKEN = 4.0
RULES_TOKENS = 1500
"""Of a prompt's own text with its criteria, where no vote of the method was measured."""
ASSUMED_OUTPUT_TOKENS = 800
"""Of a vote, where none of the method was measured."""
_ASSUMED_CALLS_AT_ONCE = 16
_RANK = ("none", "measured", "other_judge", "list_price", "unknown")


@dataclass
class Part:
    """One judge of one method over all runs, or one method without judges."""

    method: str
    judge: str | None
    gradings: int = 0
    calls: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    usd: Decimal | None = Decimal(0)
    variance: float = 0.0
    """Of the cost, from one vote to the next."""
    doubt: float = 0.0
    """Standard deviation of the cost by what holds for all votes alike."""
    basis: str = "none"
    seconds: float | None = 0.0
    """Of work, one piece after the other; null where it was never measured."""
    each_s: float | None = None
    """Of one grading without judges."""

    def view(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "judge": self.judge,
            "gradings": self.gradings,
            "calls": self.calls,
            "input_tokens": round(self.input_tokens),
            "output_tokens": round(self.output_tokens),
            "cost_usd": None if self.usd is None else money(self.usd),
            "basis": self.basis,
        }


@dataclass
class _Known:
    """Read once per estimate."""

    runs: Mapping[str, Mapping[str, RunVotes]]
    evidence: Mapping[str, int]
    parts: dict[tuple[str, str | None], Part] = field(default_factory=dict[tuple[str, str | None], Part])
    judges: dict[tuple[str, str | None], JudgeVotes | None] = field(
        default_factory=dict[tuple[str, str | None], JudgeVotes | None]
    )
    models: dict[str, ModelSpec | None] = field(default_factory=dict[str, ModelSpec | None])
    items: dict[tuple[str, str], int | None] = field(default_factory=dict[tuple[str, str], int | None])


class Estimator:
    """Estimates for one plan; the tasks' manifests are those of the runs."""

    def __init__(
        self, tx: Tx, blobs: BlobStore, project_id: str, plan: PlanSpec, tasks: Mapping[str, TaskManifest]
    ) -> None:
        self._tx, self._blobs, self._project_id, self._plan, self._tasks = tx, blobs, project_id, plan, tasks

    async def estimate(self, runs: Sequence[Candidate]) -> dict[str, Any]:
        """Return the estimate as it is kept and shown."""
        known = await self._known(runs)
        asked = people = 0
        extract: set[str] = set()
        for run in runs:
            for spec, _ in specs_for(self._plan, self._tasks[run.task_id].graders):
                queue = getattr(grader_for(spec.method), "queue", "rooms")
                people += queue == "people"
                asked += 1
                if queue == "judges":
                    extract.add(run.digest)
                    await self._add_judged(known, run, spec)
                else:
                    await self._add_other(known, spec)
        return _summary(len(runs), asked, people, extract, known)

    async def _known(self, runs: Sequence[Candidate]) -> _Known:
        methods = {s.method for t in self._tasks.values() for s, _ in specs_for(self._plan, t.graders)}
        ids = [run.run_id for run in runs]
        by_run = {m: await judge_figures.by_run(self._tx, self._project_id, m, ids) for m in methods}
        digests = {run.digest for run in runs}
        sizes_ = await judge_figures.evidence_sizes(self._tx, self._project_id, EVIDENCE_VERSION, digests)
        return _Known(by_run, sizes_)

    async def _add_judged(self, known: _Known, run: Candidate, spec: GraderSpec) -> None:
        settings = sizes.settings_of(spec.method, spec.settings)
        if settings is None:
            await self._add_other(known, spec)
            return
        items = self._items(known, run, spec, settings)
        for judge in settings.judges:
            part = known.parts.setdefault((spec.method, judge.key), Part(spec.method, judge.key))
            part.gradings += 1
            await self._add_votes(known, part, judge, run, settings, items)

    async def _add_votes(
        self, known: _Known, part: Part, judge: JudgeSpec, run: Candidate, settings: JudgingSettings, items: int | None
    ) -> None:
        calls = (items or 1) * settings.votes
        own = await self._judge(known, part.method, judge.model)
        like = own or await self._judge(known, part.method, None)
        reading = self._reading(known, part.method, run, settings, like)
        writing = like.output_tokens if like else ASSUMED_OUTPUT_TOKENS
        basis = "measured" if own else "other_judge" if like else "list_price"
        usd = await self._price(known, judge.model, reading, writing, own)
        part.calls += calls
        part.input_tokens += calls * reading
        part.output_tokens += calls * writing
        took = own.took_s if own else None
        part.seconds = None if part.seconds is None or took is None else part.seconds + calls * took
        if usd is None or part.usd is None or items is None:
            part.usd, part.basis = None, "unknown"
            return
        part.usd += calls * usd
        part.basis = max(part.basis, basis, key=_RANK.index)
        spread = own.output_sd / own.output_tokens if own and own.n > 1 and own.output_tokens else ASSUMED_SPREAD
        part.variance += calls * (float(usd) * spread) ** 2
        rest = 0.0 if basis == "measured" else ASSUMED_SPREAD * (1 if basis == "list_price" else 0.5)
        part.doubt += calls * float(usd) * max(rest, spread / math.sqrt(own.n) if own else 0.0)

    async def _add_other(self, known: _Known, spec: GraderSpec) -> None:
        part = known.parts.get((spec.method, None))
        if part is None:
            part = known.parts[spec.method, None] = Part(spec.method, None)
            part.each_s = await judge_figures.seconds_of(self._tx, self._project_id, spec.method)
        part.gradings += 1
        part.seconds = None if part.each_s is None else part.gradings * part.each_s

    def _reading(
        self, known: _Known, method: str, run: Candidate, settings: JudgingSettings, like: JudgeVotes | None
    ) -> float:
        before = known.runs[method].get(run.run_id)
        if before is not None and before.input_tokens is not None:
            return before.input_tokens
        if like is not None:
            return like.input_tokens
        size = known.evidence.get(run.digest, run.size_bytes)
        return min(size, sizes.most_chars(settings)) / CHARS_PER_TOKEN + RULES_TOKENS

    def _items(self, known: _Known, run: Candidate, spec: GraderSpec, settings: JudgingSettings) -> int | None:
        before = known.runs[spec.method].get(run.run_id)
        key = (spec.method, run.task_id)
        if key not in known.items:
            hidden = {f.path: f.sha256 for f in self._tasks[run.task_id].hidden}
            known.items[key] = sizes.items(settings, partial(_open, self._blobs, hidden))
        return known.items[key] or (before.items if before else None)

    async def _judge(self, known: _Known, method: str, model: str | None) -> JudgeVotes | None:
        if (method, model) not in known.judges:
            known.judges[method, model] = await judge_figures.of_judge(self._tx, self._project_id, method, model)
        return known.judges[method, model]

    async def _price(
        self, known: _Known, model: str, reading: float, writing: float, own: JudgeVotes | None
    ) -> Decimal | None:
        if model not in known.models:
            row = await models.find(self._tx, self._project_id, model)
            known.models[model] = None if row is None else row.spec
        spec = known.models[model]
        if spec is None:
            return None
        cached = reading * own.cached_share if own else 0.0
        written = reading * own.written_share if own else 0.0
        usage = TokenUsage(
            input_tokens=max(0, round(reading - cached - written)),
            cached_input_tokens=round(cached),
            cache_write_tokens=round(written),
            output_tokens=round(writing),
        )
        return cost_of(spec, usage, {}).usd


def money(usd: Decimal) -> str:
    return f"{usd:.6f}"


def _open(blobs: BlobStore, hidden: Mapping[str, str], path: str) -> BinaryIO:
    try:
        return blobs.open(hidden[path])
    except (KeyError, NotFound) as error:
        raise GraderFault("hidden_missing", path) from error


def _summary(runs: int, gradings: int, people: int, extract: set[str], known: _Known) -> dict[str, Any]:
    parts = [known.parts[key] for key in sorted(known.parts, key=str)]
    judged = [part for part in parts if part.judge is not None]
    usd = None if any(part.usd is None for part in judged) else sum((p.usd or Decimal(0) for p in judged), Decimal(0))
    spread = math.sqrt(sum(p.variance for p in judged) + sum(p.doubt for p in judged) ** 2)
    basis = max((p.basis for p in judged), key=_RANK.index, default="none")
    return {
        "runs": runs,
        "gradings": gradings,
        "people_gradings": people,
        "judge_calls": sum(p.calls for p in judged),
        "input_tokens": round(sum(p.input_tokens for p in judged)),
        "output_tokens": round(sum(p.output_tokens for p in judged)),
        "cost_usd": None if usd is None else {"p50": money(usd), "p90": money(usd + Decimal(Z_90 * spread))},
        "basis": basis,
        "parts": [part.view() for part in parts],
        "evidence": {"documents": len(extract), "to_extract": len(extract - known.evidence.keys())},
        "duration_s": _duration(parts, known),
    }


def _duration(parts: Sequence[Part], known: _Known) -> float | None:
    """Judges work side by side, each as many calls at once as its model takes."""
    slowest: dict[str, float] = defaultdict(float)
    for part in parts:
        if part.seconds is None:
            return None
        model = part.judge.rpartition("#")[0] if part.judge else ""
        spec = known.models.get(model)
        at_once = (spec.max_concurrency if spec else None) or _ASSUMED_CALLS_AT_ONCE
        slowest[model] += part.seconds / (at_once if part.judge else 1)
    return round(max(slowest.values(), default=0.0), 1)

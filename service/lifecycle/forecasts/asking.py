"""Forecasters at work: every forecast of a set once, several at a time, in the order of the tasks.

A forecaster that is away rests, alone, and goes on later; what it was asked meanwhile is asked again. What is recorded is never
asked for twice: a start after a crash goes on with what is missing.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from service.domain.forecasts import (
    MOST_ASKS,
    Forecast,
    ForecasterSpec,
    ForecastPrompt,
    ForecastState,
    Said,
)
from service.domain.grants import GrantedModel
from service.domain.models import TokenUsage
from service.domain.tasks import TaskManifest
from service.graders.contract import GraderBusy, GraderFault, InvalidVote
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.forecasts.wording import Asked, Template, asked
from service.lifecycle.judge_calls import JudgeCalls, checked
from service.models.messages import Answer
from service.models.pricing import cost_of
from service.store import tasks
from service.store.database import Database, Tx, retrying
from service.store.forecasts import Key, NewForecast
from service.store.rows_forecasts import ForecastSetRow

AT_ONCE = 8
"""Calls of one forecaster."""
MOST_CAUSE = 64
_EVERYWHERE = frozenset({"judge_misconfigured", "budget_exhausted"})
"""Faults that the forecaster's next question would meet as well."""
_Item = tuple[str, ForecastPrompt]


@dataclass(frozen=True, slots=True)
class Rest:
    """How long a forecaster that is away is left alone, seconds."""

    first_s: float = 5.0
    longest_s: float = 120.0
    most_s: float = 6 * 3600.0
    """Of not one answer, after which it is given up for now."""


@dataclass(slots=True)
class _Lane:
    """One forecaster."""

    spec: ForecasterSpec
    left: deque[_Item]
    pause_s: float
    heard_at: float
    """When it last answered, or began; monotonic."""
    until: float = 0.0
    """It rests until then."""
    broken: str | None = None
    """Why it need not be asked anything more."""
    away: bool = False


@dataclass
class Asking:
    """What the forecasters of one set share."""

    db: Database
    calls: JudgeCalls
    writer: BatchWriter[NewForecast, bool]
    row: ForecastSetRow
    shape: Template
    crash: CrashPoints
    rest: Rest = field(default_factory=Rest)
    database_patience_s: float = 600.0
    done: int = 0
    """Recorded by this start."""

    async def run(self, task_ids: Sequence[str], recorded: set[Key]) -> list[str]:
        """Ask for what is missing; return the forecasters that were away to the end. Raises Unavailable."""
        lanes = [self._lane(one, task_ids, recorded) for one in self.row.spec.forecasters]
        work = [asyncio.create_task(self._work(lane), name="forecasts") for lane in lanes for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*work)
        finally:
            for one in work:
                one.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        return [lane.spec.key for lane in lanes if lane.away]

    def _lane(self, spec: ForecasterSpec, task_ids: Sequence[str], recorded: set[Key]) -> _Lane:
        wanted = ((task_id, prompt) for task_id in task_ids for prompt in self.row.spec.prompts)
        left = deque((t, p) for t, p in wanted if (t, spec.key, p.key) not in recorded)
        return _Lane(spec, left, self.rest.first_s, monotonic())

    async def _work(self, lane: _Lane) -> None:
        while lane.left and not lane.away:
            pause = lane.until - monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
                continue
            item = lane.left.popleft()
            try:
                await self._one(lane, item)
            except GraderBusy:
                lane.left.appendleft(item)
                self._put_off(lane)

    def _put_off(self, lane: _Lane) -> None:
        now = monotonic()
        if now < lane.until:
            return  # another call of it has said so
        lane.away = now - lane.heard_at >= self.rest.most_s
        lane.until = now + lane.pause_s
        lane.pause_s = min(lane.pause_s * 2, self.rest.longest_s)

    async def _one(self, lane: _Lane, item: _Item) -> None:
        task_id, prompt = item
        if lane.broken is not None:
            await self._record(self._failed(lane, item, lane.broken), None)
            return
        manifest = await self._manifest(task_id)
        try:
            model = await self.calls.model(self.row.project_id, lane.spec)
            said = asked(self.shape, prompt, manifest, self.row.spec.about.text, self.row.spec.seed)
            forecast = await self._forecast(lane.spec, model, item, said)
        except GraderFault as error:
            lane.broken = error.type if error.type in _EVERYWHERE else None
            await self._record(self._failed(lane, item, error.type), None)
            return
        lane.heard_at, lane.pause_s = monotonic(), self.rest.first_s
        self.crash.reach("forecasts.asked")
        await self._record(forecast, said)

    async def _forecast(self, spec: ForecasterSpec, model: GrantedModel, item: _Item, said: Asked) -> Forecast:
        """Ask, and once more at twice the tokens. Raises GraderBusy, GraderFault."""
        usage: TokenUsage | None = TokenUsage()
        reported, cause, found = None, None, None
        asks = 0
        while found is None and asks < MOST_ASKS:
            tokens = spec.max_output_tokens * 2**asks
            asks += 1
            try:
                answer = await self._answer(spec.model_copy(update={"max_output_tokens": tokens}), model, said)
                usage = None if usage is None or answer.usage is None else usage.plus(answer.usage)
                reported = answer.model or reported
                found = said.read(checked(answer))
            except InvalidVote as error:
                cause = (str(error) or "schema")[:MOST_CAUSE]
                usage = usage if cause != "bad_answer" else None  # nobody could read what it used
        return self._made(spec, item, found, asks=asks, cause=cause, reported=reported, usage=usage, model=model)

    async def _answer(self, spec: ForecasterSpec, model: GrantedModel, said: Asked) -> Answer:
        return await self.calls.ask(self.row.project_id, model, spec, lambda: said.question, self.row.id)

    def _made(
        self,
        spec: ForecasterSpec,
        item: _Item,
        said: Said | None,
        *,
        asks: int,
        cause: str | None,
        reported: str | None,
        usage: TokenUsage | None,
        model: GrantedModel,
    ) -> Forecast:
        return Forecast(
            **self._about(spec, item),
            state=ForecastState.EXCLUDED if said is None else ForecastState.OK,
            said=said,
            reported_model=reported,
            asks=asks,
            cause=cause if said is None else None,
            usage=usage,
            cost_usd=None if usage is None else cost_of(model.spec, usage, {}).usd,
        )

    def _failed(self, lane: _Lane, item: _Item, cause: str) -> Forecast:
        return Forecast(**self._about(lane.spec, item), state=ForecastState.FAILED, cause=cause[:MOST_CAUSE])

    def _about(self, spec: ForecasterSpec, item: _Item) -> dict[str, Any]:
        task_id, prompt = item
        return {
            "task_id": task_id, "forecaster": spec.key, "prompt": prompt.key, "model": spec.model,
            "variant": prompt.variant.value, "with_reason": prompt.reason, "system": prompt.system.value,
            "template_sha256": self.row.template_sha256,
        }  # fmt: skip

    async def _record(self, forecast: Forecast, said: Asked | None) -> None:
        blobs: dict[str, bytes] = {}
        if said is not None:
            data = said.rendered()
            digest = hashlib.sha256(data).hexdigest()
            blobs, forecast = {digest: data}, replace(forecast, rendered_sha256=digest)
        sizes = {digest: len(data) for digest, data in blobs.items()}
        await self.writer.write(NewForecast(self.row.id, self.row.project_id, forecast, sizes), blobs)
        self.done += 1

    async def _manifest(self, task_id: str) -> TaskManifest:
        async def find(tx: Tx) -> dict[str, TaskManifest]:
            return await tasks.manifests(tx, self.row.project_id, [task_id])

        return (await retrying(self.db, find, self.database_patience_s))[task_id]

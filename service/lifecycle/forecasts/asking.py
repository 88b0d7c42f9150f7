"""Forecasters at work: every forecast of a set once, several at a time, in the order of the tasks.

What is recorded is never asked for twice: a start after a crash goes on with what is missing.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from service.domain.forecasts import Forecast, ForecasterSpec, ForecastPrompt, ForecastState, Said
from service.domain.grants import GrantedModel
from service.domain.tasks import TaskManifest
from service.graders.contract import GraderFault
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.forecasts.wording import Asked, Template, asked
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.surveys.lanes import Lane, Rest, work_off
from service.lifecycle.surveys.twice import EVERYWHERE, MOST_CAUSE, Heard, ask_twice, rendered
from service.models.messages import Answer
from service.store import tasks
from service.store.database import Database, Tx, retrying
from service.store.forecasts import Key, NewForecast
from service.store.rows_forecasts import ForecastSetRow

_Item = tuple[str, ForecastPrompt]
_Lane = Lane[ForecasterSpec, _Item]


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
        return [spec.key for spec in await work_off(lanes, self._one)]

    def _lane(self, spec: ForecasterSpec, task_ids: Sequence[str], recorded: set[Key]) -> _Lane:
        wanted = ((task_id, prompt) for task_id in task_ids for prompt in self.row.spec.prompts)
        return Lane(spec, ((t, p) for t, p in wanted if (t, spec.key, p.key) not in recorded), self.rest)

    async def _one(self, lane: _Lane, item: _Item) -> None:
        task_id, prompt = item
        if lane.broken is not None:
            await self._record(self._failed(lane, item, lane.broken), None)
            return
        manifest = await self._manifest(task_id)
        try:
            model = await self.calls.model(self.row.project_id, lane.spec)
            said = asked(self.shape, prompt, manifest, self.row.spec.about.text, self.row.spec.seed)
            heard = await ask_twice(partial(self._answer, model, said), lane.spec, model, said.read)
        except GraderFault as error:
            lane.broken = error.type if error.type in EVERYWHERE else None
            await self._record(self._failed(lane, item, error.type), None)
            return
        lane.heard()
        self.crash.reach("forecasts.asked")
        await self._record(self._made(lane.spec, item, heard), said)

    async def _answer(self, model: GrantedModel, said: Asked, spec: ForecasterSpec) -> Answer:
        return await self.calls.ask(self.row.project_id, model, spec, lambda: said.question, self.row.id)

    def _made(self, spec: ForecasterSpec, item: _Item, heard: Heard[Said]) -> Forecast:
        return Forecast(
            **self._about(spec, item),
            state=ForecastState.EXCLUDED if heard.said is None else ForecastState.OK,
            said=heard.said,
            reported_model=heard.reported,
            asks=heard.asks,
            cause=heard.cause,
            usage=heard.usage,
            cost_usd=heard.cost_usd,
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
            data = rendered(said.question)
            digest = hashlib.sha256(data).hexdigest()
            blobs, forecast = {digest: data}, replace(forecast, rendered_sha256=digest)
        sizes = {digest: len(data) for digest, data in blobs.items()}
        await self.writer.write(NewForecast(self.row.id, self.row.project_id, forecast, sizes), blobs)
        self.done += 1

    async def _manifest(self, task_id: str) -> TaskManifest:
        async def find(tx: Tx) -> dict[str, TaskManifest]:
            return await tasks.manifests(tx, self.row.project_id, [task_id])

        return (await retrying(self.db, find, self.database_patience_s))[task_id]

"""Annotators at work: every vote of a set once, several at a time, in the order of the items.

What is recorded is never asked for twice: a start after a crash goes on with what is missing.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from service.domain.annotations import Annotation, AnnotationState, AnnotatorSpec
from service.domain.grants import GrantedModel
from service.graders.contract import GraderFault
from service.lifecycle.annotations.showing import NotShown, Showing
from service.lifecycle.annotations.wording import Asked, Said, Template, asked
from service.lifecycle.batch_writer import BatchWriter
from service.lifecycle.crash_points import CrashPoints
from service.lifecycle.judge_calls import JudgeCalls
from service.lifecycle.surveys.lanes import Lane, Rest, work_off
from service.lifecycle.surveys.twice import EVERYWHERE, MOST_CAUSE, Heard, ask_twice, rendered
from service.models.messages import Answer
from service.store.annotations import Key, NewAnnotation, SetTarget
from service.store.rows_annotations import AnnotationSetRow

_Item = tuple[SetTarget, int]
_Lane = Lane[AnnotatorSpec, _Item]
_REFUSED = "refused"
"""Cause of an answer that the model would not give (judge_calls)."""


@dataclass
class Asking:
    """What the annotators of one set share."""

    calls: JudgeCalls
    writer: BatchWriter[NewAnnotation, bool]
    row: AnnotationSetRow
    shape: Template
    showing: Showing
    crash: CrashPoints
    rest: Rest = field(default_factory=Rest)
    done: int = 0
    """Recorded by this start."""

    async def run(self, targets: Sequence[SetTarget], recorded: set[Key]) -> list[str]:
        """Ask for what is missing; return the annotators that were away to the end. Raises Unavailable."""
        lanes = [self._lane(one, targets, recorded) for one in self.row.spec.annotators]
        return [spec.key for spec in await work_off(lanes, self._one)]

    def _lane(self, spec: AnnotatorSpec, targets: Sequence[SetTarget], recorded: set[Key]) -> _Lane:
        wanted = ((one, n) for one in targets for n in range(1, self.row.spec.votes + 1))
        return Lane(spec, ((t, n) for t, n in wanted if (t.target, spec.key, n) not in recorded), self.rest)

    async def _one(self, lane: _Lane, item: _Item) -> None:
        target, n = item
        about: dict[str, Any] = {
            "target": target.target, "annotator": lane.spec.key, "n": n, "model": lane.spec.model,
        }  # fmt: skip
        if lane.broken is not None:
            await self._record(Annotation(**about, state=AnnotationState.FAILED, cause=lane.broken), None)
            return
        shown = await self.showing.of(target)
        if isinstance(shown, NotShown):
            await self._record(Annotation(**about, state=shown.state, cause=shown.cause[:MOST_CAUSE]), None)
            return
        said = asked(self.shape, self.row.spec, shown, n)
        try:
            model = await self.calls.model(self.row.project_id, lane.spec)
            heard = await ask_twice(partial(self._answer, model, said), lane.spec, model, said.read)
        except GraderFault as error:
            lane.broken = error.type if error.type in EVERYWHERE else None
            cause = error.type[:MOST_CAUSE]
            await self._record(Annotation(**about, state=AnnotationState.FAILED, cause=cause), None)
            return
        lane.heard()
        self.crash.reach("annotations.asked")
        await self._record(_made(about, heard), said)

    async def _answer(self, model: GrantedModel, said: Asked, spec: AnnotatorSpec) -> Answer:
        return await self.calls.ask(self.row.project_id, model, spec, lambda: said.question, self.row.id)

    async def _record(self, one: Annotation, said: Asked | None) -> None:
        blobs: dict[str, bytes] = {}
        if said is not None:
            data = rendered(said.question)
            digest = hashlib.sha256(data).hexdigest()
            blobs, one = {digest: data}, replace(one, rendered_sha256=digest)
        sizes = {digest: len(data) for digest, data in blobs.items()}
        await self.writer.write(NewAnnotation(self.row.id, self.row.project_id, one, sizes), blobs)
        self.done += 1


def _made(about: dict[str, Any], heard: Heard[Said]) -> Annotation:
    none = AnnotationState.REFUSED if heard.cause == _REFUSED else AnnotationState.UNREADABLE
    return Annotation(
        **about,
        state=none if heard.said is None else AnnotationState.ANSWERED,
        value=None if heard.said is None else heard.said.value,
        reason=None if heard.said is None else heard.said.reason,
        reported_model=heard.reported,
        asks=heard.asks,
        cause=heard.cause,
        usage=heard.usage,
        cost_usd=heard.cost_usd,
    )

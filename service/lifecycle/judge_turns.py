"""Whose call to a judge leaves next: projects take turns, so that the many calls of one do not starve another's few."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_Waiting = asyncio.Future[None]


@dataclass(slots=True)
class _Lane:
    """The calls of one project to one model."""

    most: int
    busy: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])


class Turns:
    """``most`` calls at once, of one project at most ``per_project``, of one to one model as many as that may have."""

    def __init__(self, most: int, per_project: int | None = None) -> None:
        self._most = most
        self._per_project = per_project or most
        self._busy = 0
        self._projects: OrderedDict[str, OrderedDict[str, _Lane]] = OrderedDict()

    @asynccontextmanager
    async def place(self, project_id: str, model: str, most: int | None = None) -> AsyncGenerator[None]:
        """Hold a place for the length of the block."""
        lanes = self._projects.setdefault(project_id, OrderedDict())
        lane = lanes.setdefault(model, _Lane(self._most))
        lane.most = most or self._most
        await self._enter(lane)
        try:
            yield
        finally:
            self._leave(project_id, model, lane)

    async def _enter(self, lane: _Lane) -> None:
        turn: _Waiting = asyncio.get_running_loop().create_future()
        lane.waiting.append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came together with the cancellation
                self._busy -= 1
                lane.busy -= 1
            elif turn in lane.waiting:
                lane.waiting.remove(turn)
            self._serve()
            raise

    def _leave(self, project_id: str, model: str, lane: _Lane) -> None:
        self._busy -= 1
        lane.busy -= 1
        lanes = self._projects.get(project_id)
        if lanes is not None and not lane.busy and not lane.waiting and lanes.get(model) is lane:
            del lanes[model]
            if not lanes:
                del self._projects[project_id]
        self._serve()

    def _serve(self) -> None:
        while self._busy < self._most and (found := self._next()) is not None:
            project_id, model, lane = found
            lane.waiting.popleft().set_result(None)
            lane.busy += 1
            self._busy += 1
            self._projects[project_id].move_to_end(model)
            self._projects.move_to_end(project_id)

    def _next(self) -> tuple[str, str, _Lane] | None:
        for project_id, lanes in self._projects.items():
            if sum(lane.busy for lane in lanes.values()) >= self._per_project:
                continue
            for model, lane in lanes.items():
                while lane.waiting and lane.waiting[0].done():  # it gave up, and has not been here to say so
                    lane.waiting.popleft()
                if lane.waiting and lane.busy < lane.most:
                    return project_id, model, lane
        return None

"""Evaluations: agents by tasks by samples, drafted, estimated, started, watched, changed and ended as one thing."""

import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of, pages
from workstead.models_evaluations import Evaluation, LogEntry

_PATH = "/v1/evaluations"


class AsyncEvaluations:
    """``/v1/evaluations``. ``spec``: as ``api_schema/evaluation.schema.json`` and ``docs/evaluations.md`` have it."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def create(self, spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Evaluation:
        """Make a draft with its estimate; nothing runs. Raises Invalid (``evaluation_refused`` with ``problems``), NotFound."""
        return await self._post(_PATH, dict(spec), idempotency_key)

    async def get(self, evaluation_id: str) -> Evaluation:
        return Evaluation.model_validate(await self._http.json("GET", _path(evaluation_id)))

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Evaluation]:
        """Yield evaluations, newest first; ``filters``: state, benchmark_id, name, label.KEY, sort."""
        async for item in pages(self._http, _PATH, filters or {}, limit):
            yield Evaluation.model_validate(item)

    async def estimate(self, evaluation_id: str) -> Evaluation:
        """Estimate anew, by what is known now."""
        return await self._post(_path(evaluation_id, "estimate"), None, None)

    async def start(
        self, evaluation_id: str, revision: int, *, skip_preflight: bool = False, idempotency_key: str | None = None
    ) -> Evaluation:
        """Start the draft as it was at ``revision``: after its preflight, or at once, which is recorded.

        Raises PreconditionFailed (it was changed), Conflict (it is no draft).
        """
        headers = {"If-Match": f'"{revision}"'}
        return await self._post(
            _path(evaluation_id, "start"), {"skip_preflight": skip_preflight}, idempotency_key, headers
        )

    async def stop(self, evaluation_id: str, mode: str = "collect") -> Evaluation:
        """End it: what has not begun is cancelled; what runs is treated as ``mode`` says (``finish``, ``collect``, ``discard``),
        or goes on (``queued``)."""
        return await self._post(_path(evaluation_id, "stop"), {"mode": mode}, None)

    async def resume(self, evaluation_id: str) -> Evaluation:
        """Make the runs that are missing: of what was cancelled, invalidated or never made."""
        return await self._post(_path(evaluation_id, "resume"), None, None)

    async def add_agents(
        self, evaluation_id: str, agents: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Evaluation:
        """Add agents; only their runs are made. Raises Invalid (``evaluation_refused``), Conflict."""
        return await self._post(_path(evaluation_id, "agents"), [dict(a) for a in agents], idempotency_key)

    async def retry(
        self, evaluation_id: str, *, because: Sequence[str] = (), outcomes: Sequence[str] = ()
    ) -> Evaluation:
        """Redo runs that ended so: the former ones are invalidated, and others made in their place."""
        body = {"because": [*because], "outcomes": [*outcomes]}
        return await self._post(_path(evaluation_id, "retry"), body, None)

    async def change(self, evaluation_id: str, **changes: Any) -> Evaluation:
        """Set ``name``, ``labels``, ``notes``, ``concurrency``, ``priority``, ``budget`` or ``stop_rules``, at any time."""
        return Evaluation.model_validate(await self._http.json("PATCH", _path(evaluation_id), json=changes))

    async def hold(
        self, evaluation_id: str, *, agent: str | None = None, model: str | None = None, reason: str = ""
    ) -> Evaluation:
        """Let nothing more begin: of the whole, of an agent, or of a model's agents. What runs goes on."""
        return await self._held(evaluation_id, "hold", agent, model, {"reason": reason})

    async def release(self, evaluation_id: str, *, agent: str | None = None, model: str | None = None) -> Evaluation:
        """Take a hold away, a person's or a rule's; stop rules look only at runs that end from now on."""
        return await self._held(evaluation_id, "release", agent, model, {})

    async def log(self, evaluation_id: str) -> AsyncIterator[LogEntry]:
        """Yield who did what to it, in order."""
        async for item in pages(self._http, _path(evaluation_id, "log"), {}, None):
            yield LogEntry.model_validate(item)

    async def matrix(self, evaluation_id: str, **options: Any) -> dict[str, Any]:
        """Return agents by tasks, the provisional table, causes by agent, what is slowest, dearest and silent."""
        found: dict[str, Any] = await self._http.json("GET", _path(evaluation_id, "matrix"), params=options)
        return found

    async def series(
        self, evaluation_id: str, metrics: Sequence[str], *, by: str | None = None, step_s: float | None = None
    ) -> dict[str, Any]:
        """Return figures over time; ``metrics``: done, graded, earned_usd, spend_usd, score; ``by``: agent."""
        said = {"metric": ",".join(metrics), "by": by, "step_s": step_s}
        params = {name: value for name, value in said.items() if value is not None}
        found: dict[str, Any] = await self._http.json("GET", _path(evaluation_id, "series"), params=params)
        return found

    async def tables(self, evaluation_id: str) -> Sequence[dict[str, Any]]:
        """Return which result tables there are, with their dictionary."""
        path = _path(evaluation_id, "tables")
        return items_of(await self._http.json("GET", path), path)

    async def delete(self, evaluation_id: str) -> None:
        """Forget a draft, or one that has no runs any more. Raises Conflict."""
        await self._http.request("DELETE", _path(evaluation_id))

    async def wait(
        self,
        evaluation_id: str,
        on_change: Callable[[Evaluation], None] | None = None,
        until: Callable[[Evaluation], bool] = lambda found: not found.under_way,
    ) -> Evaluation:
        """Return the evaluation once ``until`` holds; ``on_change`` sees each revision before."""
        tried, seen = 0, -1
        while True:
            found = await self.get(evaluation_id)
            if found.revision != seen:
                tried, seen = 0, found.revision
                if on_change is not None:
                    on_change(found)
            if until(found):
                return found
            await self._http.pause(min(tried + 2, 5))
            tried += 1

    async def _held(
        self, evaluation_id: str, what: str, agent: str | None, model: str | None, more: dict[str, Any]
    ) -> Evaluation:
        named = {name: value for name, value in {"agent": agent, "model": model}.items() if value is not None}
        return await self._post(_path(evaluation_id, what), {**named, **more}, None)

    async def _post(
        self, path: str, body: Any, idempotency_key: str | None, headers: Mapping[str, str] | None = None
    ) -> Evaluation:
        sent = {"Idempotency-Key": idempotency_key or str(uuid.uuid4()), **(headers or {})}
        return Evaluation.model_validate(await self._http.json("POST", path, json=body, headers=sent))


def _path(evaluation_id: str, *rest: str) -> str:
    return "/".join([_PATH, quote(evaluation_id, safe=""), *rest])

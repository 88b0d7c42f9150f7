"""Answers from a recording in place of a provider: the same bytes in the same pieces, no network."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from service.domain.agents import SCREENS
from service.domain.errors import NotFound
from service.gateway.cassettes.service_tape import ServiceTape, load_service_tape
from service.gateway.cassettes.tape import CassetteIncomplete, CassetteMismatch, Entry, Tape, load_tape
from service.gateway.dialects.contract import Route
from service.gateway.upstream import UpstreamAnswer, UpstreamFailed
from service.store import attempts, judge_recordings, model_requests, service_calls
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.request_bodies import Body, BodyUnreadable, read_body
from service.store.rows_requests import ModelRequestRow

_PAGE = 500
_MOST = 20_000
"""Requests of a recording that are read; runs have far fewer."""
_AGENT, _CLIENT, _JUDGE = "agent", "client", "judge"
_RECORDED = (_AGENT, _CLIENT)
"""Purposes of the requests that are a run's own."""


class RecordedRefusal(Exception):
    """The recorded request was answered by the gateway itself: no provider did."""

    def __init__(self, status: int, type: str, cause: str, *, provider: bool, cut: bool) -> None:
        answered = cause.removeprefix("provider_")
        # As the gateway said it then: what the client reads goes into its next request.
        super().__init__(f"the provider answers {answered}" if answered.isdigit() else f"the provider: {cause}")
        self.status, self.type, self.cause, self.provider = status, type, cause, provider
        self.cut = cut
        """What it took is not known."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run asked, of its latest attempt that asked anything."""

    agent: Tape
    client: Tape
    """Its simulated client's requests."""
    services: ServiceTape
    judges: Tape | None = None
    """What the judges of a grading were asked; of a run's own recording null."""

    def of(self, purpose: str) -> Tape:
        """Raises CassetteMismatch: others' requests are no part of a run's recording."""
        if purpose == _JUDGE and self.judges is not None:
            return self.judges
        if purpose not in _RECORDED:
            raise CassetteMismatch(f"requests of a {purpose} are not recorded")
        return self.client if purpose == _CLIENT else self.agent


class Tapes(Protocol):
    async def load(self, project_id: str, run_id: str) -> Recorded:
        """Return a run's recording, unused. Raises CassetteMismatch (there is none), Unavailable."""
        ...

    async def load_judged(self, project_id: str, grading_id: str) -> Recorded:
        """Return what the judges of a grading answered, unused. Raises as :meth:`load`."""
        ...


class NoTapes:
    """A gateway that keeps no bodies has no recordings."""

    async def load(self, project_id: str, run_id: str) -> Recorded:
        del project_id
        raise CassetteMismatch(f"there is no recording of {run_id}")

    async def load_judged(self, project_id: str, grading_id: str) -> Recorded:
        return await self.load(project_id, grading_id)


@dataclass(frozen=True, slots=True)
class StoredTapes:
    db: Database
    blobs: BlobStore

    async def load(self, project_id: str, run_id: str) -> Recorded:
        """See :class:`Tapes`."""
        async with self.db.reading() as tx:
            requests = await _all(lambda after: model_requests.list_for_run(tx, run_id, after, _PAGE))
            calls = await _all(lambda after: service_calls.list_for_run(tx, run_id, after, _PAGE))
            tries = await attempts.list_for_run(tx, run_id)
        asked = [row for row in requests if row.project_id == project_id and row.purpose in _RECORDED]
        called = [row for row in calls if row.project_id == project_id]
        if not asked and not called:
            raise CassetteMismatch(f"there is no recording of {run_id}")
        latest = max(row.attempt or 0 for row in [*asked, *called])
        screen = any(attempt.provenance.get("surface") in SCREENS for attempt in tries)
        agent, client = [
            await asyncio.to_thread(
                load_tape,
                self.blobs,
                [row for row in asked if (row.attempt, row.purpose) == (latest, purpose)],
                screen=screen,
            )
            for purpose in _RECORDED
        ]
        services = await asyncio.to_thread(load_service_tape, self.blobs, called, latest)
        return Recorded(agent, client, services)

    async def load_judged(self, project_id: str, grading_id: str) -> Recorded:
        """See :class:`Tapes`. Requests that nobody answered are left out: whoever waited then need not wait again."""
        async with self.db.reading() as tx:
            rows = await judge_recordings.of_grading(tx, project_id, grading_id, _MOST)
        if not rows:
            raise CassetteMismatch(f"there is no recording of {grading_id}")
        judges = await asyncio.to_thread(load_tape, self.blobs, rows)
        return Recorded(Tape(self.blobs, []), Tape(self.blobs, []), ServiceTape(self.blobs, []), judges)


class _Numbered(Protocol):
    @property
    def n(self) -> int | None: ...


_Row = TypeVar("_Row", bound=_Numbered)


async def _all(read: Callable[[int], Awaitable[list[_Row]]]) -> list[_Row]:
    """Return what ``read`` gives above a number, page after page, up to a bound."""
    rows: list[_Row] = []
    while len(rows) < _MOST:
        page = await read(rows[-1].n or 0 if rows else 0)
        rows += page
        if len(page) < _PAGE:
            break
    return rows


@dataclass(slots=True)
class Playing:
    """The recording that answers a replayed attempt or grading, and how far it is used up; an attempt's simulated client
    shares it."""

    loading: "asyncio.Task[Recorded] | None" = None


class Replayed(Protocol):
    """Whose requests a recording answers."""

    project_id: str
    replay_of: str | None
    playing: Playing

    @property
    def purpose(self) -> str: ...


async def recording_of(caller: Replayed, tapes: Tapes) -> Recorded:
    """Return the caller's recording, loaded once however many ask at once. Raises CassetteMismatch, Unavailable."""
    playing = caller.playing
    if playing.loading is None or (
        playing.loading.done() and (playing.loading.cancelled() or playing.loading.exception())
    ):
        load = tapes.load_judged if caller.purpose == _JUDGE else tapes.load
        playing.loading = asyncio.create_task(load(caller.project_id, caller.replay_of or ""))
    return await asyncio.shield(playing.loading)


@dataclass(frozen=True, slots=True)
class ReplayUpstream:
    """Stands where :class:`service.gateway.upstream.Upstream` does, for one request of a replayed run."""

    tape: Tape
    route: Route
    model: str
    """As the client asks for it."""
    asked: bytes
    """The client's body, redacted as the recorded ones are."""
    time_scale: float = 0.0
    """Of the recorded pauses: 0 = none, 1 = as they were."""

    @asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, private: bool
    ) -> AsyncGenerator[UpstreamAnswer]:
        """Raises CassetteMismatch, RecordedRefusal."""
        del url, headers, body, private
        asked = _parsed(self.route, self.asked)
        entry = await asyncio.to_thread(self.tape.take, self.route, self.model, method, asked)
        answer = await asyncio.to_thread(_answer, self.tape.blobs, entry)
        cassette = entry.row.cassette or {}
        pieces = _pieces(answer.data, cast("list[list[int]]", cassette.get("chunks", [])), self.time_scale, entry)
        try:
            told = {"content-type": str(cassette.get("content_type", "application/json"))}
            yield UpstreamAnswer(entry.row.status or 200, told, pieces)
        finally:
            await pieces.aclose()


def _parsed(route: Route, body: bytes) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads(body)) if route.json_body else {"bytes": body.hex()}


def _answer(blobs: BlobStore, entry: Entry) -> Body:
    row = entry.row
    if row.response_blob is None or row.cassette is None:
        if row.status is None or row.error is None or row.state != "finished":
            raise CassetteIncomplete(f"the answer to request {row.n} of the recording was not kept", row.n)
        raise RecordedRefusal(
            row.status, _type_of(row), row.error, provider=row.provider_error, cut=not row.usage_known
        )
    try:
        body = read_body(blobs, row.response_blob)
    except (NotFound, BodyUnreadable) as error:
        raise CassetteIncomplete(f"the answer to request {row.n} of the recording cannot be read", row.n) from error
    if body.cut:
        raise CassetteIncomplete(f"the answer to request {row.n} of the recording was not kept whole", row.n)
    return body


def _type_of(row: ModelRequestRow) -> str:
    return "provider_rejected_credential" if row.status == 400 and row.provider_error else "provider_unavailable"


async def _pieces(data: bytes, chunks: list[list[int]], scale: float, entry: Entry) -> AsyncGenerator[bytes]:
    """The recorded cuts; then the end, or the break where the recorded answer broke off."""
    async for piece in paced(data, chunks, scale):
        yield piece
    if entry.row.error is not None and (entry.row.status or 0) < 400:
        raise UpstreamFailed("upstream_cut")


async def paced(data: bytes, chunks: list[list[int]], scale: float) -> AsyncGenerator[bytes]:
    """Yield the data in its recorded pieces; ``scale`` of the recorded pauses: 0 = none."""
    at = before = 0
    for ms, size in chunks:
        if scale > 0 and ms > before:
            await asyncio.sleep((ms - before) / 1000 * scale)
        before = ms
        yield data[at : at + size]
        at += size
    if at < len(data):
        yield data[at:]

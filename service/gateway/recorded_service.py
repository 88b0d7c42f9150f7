"""Answers from a recording in place of a service: the same bytes in the same pieces, no network."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from service.domain.errors import NotFound
from service.gateway.auth import Refused
from service.gateway.cassettes.replay import paced
from service.gateway.cassettes.tape import CassetteIncomplete
from service.gateway.service_passing import Call
from service.gateway.upstream import UpstreamAnswer, UpstreamFailed
from service.store.blobs import BlobStore
from service.store.request_bodies import BodyUnreadable, read_body
from service.store.rows_requests import ServiceCallRow


@dataclass(frozen=True, slots=True)
class RecordedService:
    """Stands where :class:`service.gateway.upstream.Upstream` does, for one call of a replayed run."""

    blobs: BlobStore
    row: ServiceCallRow
    call: Call
    time_scale: float = 0.0
    """Of the recorded pauses: 0 = none, 1 = as they were."""

    @asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, *, private: bool
    ) -> AsyncGenerator[UpstreamAnswer]:
        """Raises CassetteIncomplete, Refused (as we refused then)."""
        del method, url, headers, body, private
        row, told = self.row, self.row.cassette or {}
        if told.get("refusal") is not None and row.status is not None:
            raise Refused(row.status, row.error or "internal_error", str(told["refusal"]))
        answer: dict[str, Any] | None = told.get("answer")
        if answer is None or row.status is None:
            raise CassetteIncomplete(f"the answer to call {row.n} of the recording was not kept", row.n)
        data = await asyncio.to_thread(self._read)
        async with aclosing(self._pieces(data, answer["chunks"])) as pieces:
            yield UpstreamAnswer(row.status, dict(answer["headers"]), pieces)

    def _read(self) -> bytes:
        n = self.row.n
        if self.row.response_blob is None:
            raise CassetteIncomplete(f"the answer to call {n} of the recording was not kept", n)
        try:
            body = read_body(self.blobs, self.row.response_blob)
        except (NotFound, BodyUnreadable) as error:
            raise CassetteIncomplete(f"the answer to call {n} of the recording cannot be read", n) from error
        if body.cut:
            raise CassetteIncomplete(f"the answer to call {n} of the recording was not kept whole", n)
        return body.data

    async def _pieces(self, data: bytes, chunks: list[list[int]]) -> AsyncGenerator[bytes]:
        """The recorded cuts; then the end, or the break where the recorded answer broke off."""
        async for piece in paced(data, chunks, self.time_scale):
            yield piece
        if self.row.error == "client_gone" and self.call.gone is not None:
            # It had heard enough, or the answer never ends: nobody knows what came after.
            await asyncio.shield(self.call.gone)
        if self.row.error is not None:
            raise UpstreamFailed(self.row.error)

"""Gateway services for a loop: plain requests to ``/services/<name>/…`` on the gateway's local side."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from service.models.messages import GatewayAway, Reach
from service.models.sockets import NO_TLS

ANSWER_BYTES = 1 << 20
TIMEOUT_S = 60.0
SLOW_S = 660.0
"""For what takes long to be made; the service's own limit is lower."""


class GatewayServices:
    """The services that the agent's settings name, with the run's token."""

    def __init__(self, reach: Reach, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._reach = reach

    async def call(self, service: str, path: str, query: Mapping[str, str]) -> tuple[int, str]:
        """See :class:`service.scaffolds.loops.LoopServices`; an answer is cut at 1 MiB."""
        async with self._asked(service, "GET", path, TIMEOUT_S, params=dict(query)) as answer:
            return answer.status_code, (await _bounded(answer, ANSWER_BYTES)).decode(errors="replace")

    async def send(
        self, service: str, method: str, path: str, body: bytes, content_type: str, *, limit_bytes: int
    ) -> tuple[int, bytes]:
        """See :class:`service.scaffolds.loops.LoopServices`."""
        headers = {"content-type": content_type} if body else {}
        async with self._asked(service, method, path, SLOW_S, content=body, headers=headers) as answer:
            return answer.status_code, await _bounded(answer, limit_bytes + 1)

    async def post(
        self, service: str, path: str, body: bytes, headers: Mapping[str, str], *, limit_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """See :class:`service.scaffolds.loops.LoopServices`."""
        async with self._asked(service, "POST", path, SLOW_S, content=body, headers=headers) as answer:
            return answer.status_code, dict(answer.headers), await _bounded(answer, limit_bytes + 1)

    @asynccontextmanager
    async def _asked(
        self, service: str, method: str, path: str, timeout_s: float, headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> AsyncGenerator[httpx.Response]:  # fmt: skip
        transport = httpx.AsyncHTTPTransport(uds=self._reach.socket, verify=NO_TLS)
        sent = {**self._reach.headers, **(headers or {}), "authorization": f"Bearer {self._reach.token}"}
        url = f"http://gateway/services/{service}/{path.lstrip('/')}"
        try:
            async with (
                httpx.AsyncClient(transport=transport, timeout=timeout_s, trust_env=False) as client,
                client.stream(method, url, headers=sent, **request) as answer,
            ):
                yield answer
        except httpx.TransportError as error:
            raise GatewayAway("gateway_away", f"{service}: {type(error).__name__}") from error


async def _bounded(answer: httpx.Response, most: int) -> bytes:
    kept = bytearray()
    async for piece in answer.aiter_bytes():
        kept += piece[: most - len(kept)]
        if len(kept) >= most:
            break
    return bytes(kept)

"""Gateway services for a loop: plain requests to ``/services/<name>/…`` on the gateway's local side."""

from collections.abc import Mapping, Sequence

import httpx

from service.models.messages import GatewayAway, Reach

ANSWER_BYTES = 1 << 20
TIMEOUT_S = 60.0


class GatewayServices:
    """The services that the agent's settings name, with the run's token."""

    def __init__(self, reach: Reach, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._reach = reach

    async def call(self, service: str, path: str, query: Mapping[str, str]) -> tuple[int, str]:
        """See :class:`service.scaffolds.loops.LoopServices`; an answer is cut at 1 MiB."""
        transport = httpx.AsyncHTTPTransport(uds=self._reach.socket)
        headers = {**self._reach.headers, "authorization": f"Bearer {self._reach.token}"}
        url = f"http://gateway/services/{service}/{path.lstrip('/')}"
        try:
            async with (
                httpx.AsyncClient(transport=transport, timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream("GET", url, params=dict(query), headers=headers) as answer,
            ):
                return answer.status_code, (await _bounded(answer)).decode(errors="replace")
        except httpx.TransportError as error:
            raise GatewayAway("gateway_away", f"{service}: {type(error).__name__}") from error


async def _bounded(answer: httpx.Response) -> bytes:
    kept = bytearray()
    async for piece in answer.aiter_bytes():
        kept += piece[: ANSWER_BYTES - len(kept)]
        if len(kept) >= ANSWER_BYTES:
            break
    return bytes(kept)

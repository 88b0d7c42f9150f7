"""Hosts: where sandboxes run. For operators."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import items_of
from workstead.models import Host


class AsyncHosts:
    """``/v1/hosts``; needs an operator's token."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def list(self) -> Sequence[Host]:
        return [Host.model_validate(i) for i in items_of(await self._http.json("GET", "/v1/hosts"), "/v1/hosts")]

    async def get(self, host_id: str) -> Host:
        return Host.model_validate(await self._http.json("GET", _path(host_id)))

    async def change(self, host_id: str, **changes: Any) -> Host:
        """Set ``cordoned``, ``slots_limit`` (None takes it away) or ``labels``; what is left out stays."""
        return Host.model_validate(await self._http.json("PATCH", _path(host_id), json=changes))

    async def cordon(self, host_id: str) -> Host:
        """Let the host take no new run; those that are live go on."""
        return await self.change(host_id, cordoned=True)

    async def uncordon(self, host_id: str) -> Host:
        return await self.change(host_id, cordoned=False)

    async def drain(self, host_id: str, *, stop_worker: bool = False) -> Host:
        """Cordon and, with ``stop_worker``, end its worker when its last run is released. Raises Conflict (lost)."""
        body: Mapping[str, Any] = {"stop_worker": stop_worker}
        return Host.model_validate(await self._http.json("POST", f"{_path(host_id)}/drain", json=body))


def _path(host_id: str) -> str:
    return f"/v1/hosts/{quote(host_id, safe='')}"

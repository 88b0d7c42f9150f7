"""Operations: what the server does in the background."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import quote

from workstead._async.http import AsyncTransport
from workstead._async.pages import pages
from workstead.models import Operation

WAIT_S = 30.0


class AsyncOperations:
    """``/v1/operations``."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def get(
        self, operation_id: str, *, wait_s: float = 0, until: str = "ended", known: int | None = None
    ) -> Operation:
        """Return an operation; with ``wait_s`` (≤ 60) once it has ended, or changed since revision ``known``.

        Raises NotFound, Problem, Disconnected.
        """
        params: dict[str, Any] = {"wait_s": wait_s, "until": until} if wait_s > 0 else {}
        headers = {} if known is None else {"If-None-Match": f'"{known}"'}
        response = await self._http.request("GET", _path(operation_id), params=params, headers=headers, wait_s=wait_s)
        if response.status_code == 304:
            return await self.get(operation_id)
        return Operation.model_validate(response.json())

    async def wait(self, operation_id: str, on_change: Callable[[Operation], None] | None = None) -> Operation:
        """Return the operation once it has ended, however; ``on_change`` sees what comes before."""
        operation = await self.get(operation_id)
        while not operation.ended:
            if on_change is not None:
                on_change(operation)
            operation = await self.get(operation_id, wait_s=WAIT_S, until="change", known=operation.revision)
        return operation

    async def list(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Operation]:
        """Yield operations, newest first, at most ``limit``; ``filters``: kind, state."""
        async for item in pages(self._http, "/v1/operations", filters or {}, limit):
            yield Operation.model_validate(item)

    async def cancel(self, operation_id: str) -> Operation:
        """Ask for its end; what has ended stays as it is. Raises NotFound, Problem."""
        return Operation.model_validate(await self._http.json("POST", _path(operation_id, "cancel")))


def _path(operation_id: str, *rest: str) -> str:
    return "/".join(["/v1/operations", quote(operation_id, safe=""), *rest])

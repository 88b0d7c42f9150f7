"""An MCP server behind a gateway service, over streamable HTTP.

By hand: the official client opens streams of its own, each of which would count against the service's budget, and ties
a session to the task that opened it. Tests talk to a server made with the official library.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from service.domain.json_objects import parse_object
from service.scaffolds.loops import LoopServices
from service.scaffolds.reading import obj
from service.scaffolds.tool_loop.servers.settings import McpServer

VERSION = "2025-06-18"
ANSWER_BYTES = 4 << 20
SESSION = "mcp-session-id"


class ServerFailed(Exception):
    """No result; the text is for the model."""


class HttpSession:
    """One session with one server; opened when it is first needed, and anew when the server has forgotten it."""

    def __init__(self, services: LoopServices, server: McpServer) -> None:
        assert server.service is not None
        self._services, self._service, self._path = services, server.service, server.path
        self._opening = asyncio.Lock()
        self._headers: dict[str, str] | None = None
        self._n = 0

    async def open(self, timeout_s: float) -> None:
        """Be ready to ask. Raises ServerFailed, GatewayAway."""
        async with self._opening:
            if self._headers is not None:
                return
            about = {
                "protocolVersion": VERSION,
                "capabilities": {},
                "clientInfo": {"name": "workstead", "version": "1"},
            }
            headers, result = await self._exchange("initialize", about, timeout_s, {})
            version = result.get("protocolVersion")
            session = {SESSION: headers[SESSION]} if SESSION in headers else {}
            made = {**session, "mcp-protocol-version": version if isinstance(version, str) else VERSION}
            await self._post({"method": "notifications/initialized"}, timeout_s, made)
            self._headers = made

    async def ask(self, method: str, params: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the result. Raises ServerFailed, GatewayAway."""
        await self.open(timeout_s)
        try:
            return (await self._exchange(method, params, timeout_s, self._headers or {}))[1]
        except _Forgotten:
            # It has refused the request, so nothing was done.
            self._headers = None
        await self.open(timeout_s)
        return (await self._exchange(method, params, timeout_s, self._headers or {}))[1]

    async def _exchange(
        self, method: str, params: Mapping[str, Any], timeout_s: float, headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], dict[str, Any]]:
        self._n += 1
        n = self._n
        answered, body = await self._post({"id": n, "method": method, "params": params}, timeout_s, headers)
        found = _answer(answered.get("content-type", ""), body, n)
        if found is None:
            raise ServerFailed("the server's answer cannot be read")
        if found.get("error") is not None:
            error = obj(found["error"])
            raise ServerFailed(f"error {error.get('code')}: {str(error.get('message'))[:2000]}")
        return answered, dict(obj(found.get("result")))

    async def _post(
        self, body: dict[str, Any], timeout_s: float, headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], bytes]:
        sent = {**headers, "content-type": "application/json", "accept": "application/json, text/event-stream"}
        data = json.dumps({"jsonrpc": "2.0", **body}).encode()
        try:
            async with asyncio.timeout(timeout_s):
                status, answered, said = await self._services.post(
                    self._service, self._path, data, sent, limit_bytes=ANSWER_BYTES
                )
        except TimeoutError:
            raise ServerFailed(f"no answer in {timeout_s:g} s") from None
        if status == 404 and SESSION in headers:
            raise _Forgotten("the server has forgotten the session")
        if status >= 400:
            raise ServerFailed(f"status {status}: {said[:1000].decode(errors='replace')}")
        if len(said) > ANSWER_BYTES:
            raise ServerFailed(f"the answer has more than {ANSWER_BYTES} bytes")
        return answered, said


class _Forgotten(ServerFailed):
    pass


def _answer(content_type: str, body: bytes, n: int) -> dict[str, Any] | None:
    if not content_type.startswith("text/event-stream"):
        return parse_object(body)
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        found = parse_object(data) if data else None
        if found is not None and found.get("id") == n and "method" not in found:
            return found
    return None

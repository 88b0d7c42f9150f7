"""Listening sockets with one application each, without one server each: uvicorn's protocol on ``loop.create_server``."""

import asyncio
import copy
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

HEADERS_WAIT_S = 15.0
"""Most seconds from a connection's start, or a request's first byte, to the end of its headers."""
IDLE_S = 120.0
"""Before a connection without a request is closed."""
MAX_HEAD_BYTES = 64 << 10
BACKLOG = 256
App = Callable[[Any, Any, Any], Awaitable[None]]


class _Http(HttpToolsProtocol):
    """uvicorn's, with bounds on the time and the bytes that a request's headers take."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES + (256 << 10):  # a first read may hold much of the body
                self._give_up()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_headers()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEAD_BYTES:
            self._give_up()
            return
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """The application says 426; nobody needs to be warned."""

    def _wait_for_headers(self) -> None:
        self._stop_waiting()
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEADERS_WAIT_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Listening:
    """One socket being served."""

    def __init__(self, server: asyncio.Server, state: ServerState) -> None:
        self._server = server
        self._state = state

    def cut(self) -> None:
        """Break every connection off; new ones are taken."""
        for connection in list(self._state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()

    async def close(self) -> None:
        """Stop listening, break every connection off and wait for what it was doing."""
        self._server.close()
        self.cut()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=5)


class HttpServing:
    """Makes sockets answer. One loaded configuration serves them all."""

    def __init__(self, connections: int) -> None:
        # What goes wrong in an application is logged by it; a broken-off answer is not an error of ours.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._config = uvicorn.Config(
            _nowhere, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, limit_concurrency=connections, timeout_keep_alive=int(IDLE_S),
        )  # fmt: skip
        self._config.load()

    async def start(self, app: App, sock: socket.socket) -> Listening:
        """Serve ``app`` on the listening socket, which belongs to the result from now on."""
        config, state = copy.copy(self._config), ServerState()
        config.loaded_app = app

        def connected() -> _Http:
            return _Http(config=config, server_state=state, app_state={})

        loop = asyncio.get_running_loop()
        if sock.family == socket.AF_UNIX:
            server = await loop.create_unix_server(connected, sock=sock, backlog=BACKLOG)
        else:
            server = await loop.create_server(connected, sock=sock, backlog=BACKLOG)
        return Listening(server, state)


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive, send
    raise AssertionError("each socket has an application of its own")

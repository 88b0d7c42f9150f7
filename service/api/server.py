"""How the API is served: uvicorn with bounds on what a slow or greedy client can hold."""

import asyncio
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_WAIT_S = 15.0
"""Most seconds from a connection's start, or a request's first byte, to the end of its headers."""
MAX_HEAD_BYTES = 2 << 20
"""Most bytes that are taken in before a request's headers are complete; Edge answers what is merely too large."""
MAX_CONNECTIONS = 2000
MAX_WEBSOCKET_MESSAGE = 64 << 10
"""Most bytes that a client of a shell or a screen sends at once."""


class BoundedHttp(HttpToolsProtocol):
    """uvicorn waits for ever for the rest of a request's headers, and takes any amount of them: this one does not."""

    _headers_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self._headers_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._give_up()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_timer()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_bytes = 0
        self._headers_timer = self.loop.call_later(HEADERS_WAIT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def uvicorn_config(app: FastAPI, host: str, port: int, *, graceful_s: int = 8) -> uvicorn.Config:
    """Return the configuration to serve ``app``. Streams that are open at shutdown get ``graceful_s`` seconds."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=BoundedHttp,
        ws="websockets-sansio",
        ws_max_size=MAX_WEBSOCKET_MESSAGE,
        # Screens send compressed pictures; and what shrinks a thousandfold would fill no buffer, however little is read.
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=graceful_s,
    )

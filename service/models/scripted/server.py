"""The scripted provider on a port: in a thread of a test, or as a process."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qs

import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.models.scripted.exchanges import Exchange
from service.models.scripted.outgoing import Outgoing
from service.models.scripted.provider import Provider, credential
from service.models.scripted.scenario import Fault, Scenario

_MAX_BODY = 64_000_000
_START_S = 10.0
_TRANSPORT = "workstead.transport"
"""Key in the scope's state: cut and reset connections are no answers, so no ASGI message can make them."""


class _Protocol(HttpToolsProtocol):
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope.setdefault("state", {})[_TRANSPORT] = self.transport


class Application:
    """The ASGI side of a :class:`Provider`."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            return
        fields = cast(dict[str, Any], scope)
        raw = cast("list[tuple[bytes, bytes]]", fields["headers"])
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
        body = await _body(receive)
        query = cast(bytes, fields["query_string"]).decode("latin-1")
        method, path = cast(str, fields["method"]), cast(str, fields["path"])
        transport = cast(asyncio.Transport, fields["state"][_TRANSPORT])
        if path.startswith("/scripted/"):
            await _send(self._told(path, query, body), None, transport, receive, send)
            return
        exchange = self.provider.log.add(
            method=method, path=path, query=query, headers=headers, body=body, credential=credential(headers, query)
        )
        await _send(self.provider.respond(exchange), exchange, transport, receive, send)

    def _told(self, path: str, query: str, body: bytes) -> Outgoing:
        """The side for tests in another process: the log, and new scenarios."""
        if path == "/scripted/requests":
            after = int(parse_qs(query).get("after", ["0"])[0])
            records = [exchange.record() for exchange in self.provider.log.all(after)]
            return Outgoing(200, [json.dumps(records).encode()])
        if path == "/scripted/scenarios":
            self.provider.add(Scenario.model_validate_json(body))
            return Outgoing(204, ())
        if path == "/scripted/outage":
            self.provider.outage = Fault.model_validate_json(body) if body else None
            return Outgoing(204, ())
        return Outgoing(404, ())


async def _body(receive: ASGIReceiveCallable) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        piece = message.get("body", b"")
        total += len(piece)
        if total <= _MAX_BODY:
            parts.append(piece)
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(
    out: Outgoing,
    exchange: Exchange | None,
    transport: asyncio.Transport,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
) -> None:
    if out.ending == "reset":
        _reset(transport)
        return
    headers = {"content-type": out.content_type, **out.headers}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": out.status, "headers": encoded, "trailers": False})
    for piece, last in _marked(out.pieces):
        if out.pause_s:
            await asyncio.sleep(out.pause_s)
        if transport.is_closing():
            return
        if last and exchange is not None:
            # Before the last piece: who has read the dialect's end may look at once, and may hang up before HTTP's end.
            exchange.complete = out.ending in {"whole", "linger"}
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    broken = out.ending in {"cut", "stall"}
    if broken and exchange is not None:
        exchange.usage = None
    if out.ending in {"stall", "linger"}:
        await _hung_up(receive, out.stall_s)
    if broken:
        transport.close()
        return
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _marked(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each piece and whether it is the last; a piece is made only when the one before it has gone."""
    rest = iter(pieces)
    piece = next(rest, b"")
    while True:
        following = next(rest, None)
        yield piece, following is None
        if following is None:
            return
        piece = following


async def _hung_up(receive: ASGIReceiveCallable, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await receive()
    except TimeoutError:
        return


def _reset(transport: asyncio.Transport) -> None:
    connection = cast(socket.socket, transport.get_extra_info("socket"))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _server(provider: Provider, host: str, port: int) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            Application(provider), host=host, port=port, http=_Protocol, ws="none", lifespan="off", log_config=None,
            access_log=False, server_header=False, timeout_graceful_shutdown=1, backlog=2048, loop="asyncio",
        )
    )  # fmt: skip


def serve(host: str, port: int, scenarios: Iterable[Scenario] = (), default: str = "success") -> None:
    """Serve until a signal comes."""
    _server(Provider(scenarios, default), host, port).run()


class Scripted:
    """``with Scripted() as provider:`` a provider on a free port of 127.0.0.1, in a thread of this process."""

    def __init__(self, scenarios: Iterable[Scenario] = (), *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.provider = Provider(scenarios)
        self._listener = socket.create_server((host, port), backlog=2048)
        self._server = _server(self.provider, host, port)
        self._thread = threading.Thread(target=self._run, name="scripted provider", daemon=True)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Base URL for Anthropic and Gemini; OpenAI's is this and ``/v1``."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, scenario: Scenario) -> None:
        self.provider.add(scenario)

    def outage(self, fault: Fault | None) -> None:
        """Every request meets ``fault`` from now on; null: all is well again."""
        self.provider.outage = fault

    def requests(self, after: int = 0) -> list[Exchange]:
        """Return what was asked, in order; exchanges that are under way included."""
        return self.provider.log.all(after)

    def start(self) -> Self:
        """Raises TimeoutError."""
        self._thread.start()
        ready = threading.Event()
        deadline = _START_S
        while not self._server.started and deadline > 0:
            ready.wait(0.01)
            deadline -= 0.01
        if not self._server.started:
            raise TimeoutError("the scripted provider did not start")
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_START_S)
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

"""The worker's end of the gateway's control socket: plants listeners and hands them over, again for each new gateway."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import structlog

from service.domain.errors import Conflict, Unavailable
from service.domain.grants import Grant
from service.domain.tasks import NetworkPolicy
from service.lifecycle.gate_wire import Message, Wire, WireClosed
from service.lifecycle.ports import GateState, Plant
from service.sandboxes.contract import SandboxError

MODEL_PORT, PROXY_PORT = 80, 81
CALL_S = 15.0
CLOSE_S = 6.0
STATE_S = 2.0
WAIT_S = 20.0
"""For a gateway that is being started again."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0
_SOCKET_PATH_LIMIT = 107
Key = tuple[str, int]
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Live:
    grant: Grant
    plant: Plant | None
    until: float
    """Monotonic end of the attempt."""

    def now(self) -> Grant:
        return self.grant.model_copy(update={"seconds_left": max(0.001, self.until - time.monotonic())})

    @property
    def ports(self) -> list[int]:
        if self.plant is None:
            return []
        proxied = self.grant.network.policy in (NetworkPolicy.ALLOWLIST, NetworkPolicy.WEB)
        return [MODEL_PORT, PROXY_PORT] if proxied else [MODEL_PORT]


SERVICE_TOKEN = "service-token"  # noqa: S105 - a file's name; the gateway makes it (gateway/place.py)


class GatewayLink:
    """See ``lifecycle.ports.ModelAccess``. :meth:`run` keeps the connection; it belongs to the worker's life."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "control.sock"
        self._folder: int | None = None
        self._wire: Wire | None = None
        self._up = asyncio.Event()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self._live: dict[Key, _Live] = {}
        self._opening: dict[Key, asyncio.Lock] = {}

    @property
    def local_socket(self) -> str:
        """See ModelAccess.local_socket. Valid in this process."""
        path = self._directory / "models.sock"
        if len(os.fsencode(path)) <= _SOCKET_PATH_LIMIT:
            return str(path)
        if self._folder is None:
            self._folder = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{path.name}"

    def service_token(self) -> str:
        """See ModelAccess.service_token."""
        try:
            return (self._directory / SERVICE_TOKEN).read_text().strip()
        except OSError:
            return ""

    async def run(self) -> None:
        """Connect, and again whenever the gateway is gone; then give it all live attempts anew. For ever."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                wire = await _connect(self._path)
            except OSError:
                await asyncio.sleep(pause)
                pause = min(LAST_PAUSE_S, pause * 2)
                continue
            pause = FIRST_PAUSE_S
            self._wire = wire
            again = asyncio.create_task(self._open_all())
            try:
                await self._read(wire)
            finally:
                again.cancel()
                await asyncio.gather(again, return_exceptions=True)
                self._lose(wire)
            log.warning("gateway_gone", attempts=len(self._live))

    async def open(self, grant: Grant, plant: Plant | None) -> None:
        """See ModelAccess.open. Raises Unavailable, SandboxError, Conflict (another worker has the attempt)."""
        live = _Live(grant, plant, time.monotonic() + grant.seconds_left)
        key = (grant.run_id, grant.attempt)
        before, self._live[key] = self._live.get(key), live
        try:
            async with asyncio.timeout(WAIT_S):
                await self._until_up()
                await self._give(key, live)
        except TimeoutError:
            raise Unavailable("gateway_unavailable", "the model gateway does not answer") from None
        except BaseException:
            if self._live.get(key) is live:
                self._live.pop(key)
                if before is not None:
                    self._live[key] = before
            raise

    async def close(self, run_id: str, attempt: int) -> None:
        live = self._live.pop((run_id, attempt), None)
        self._opening.pop((run_id, attempt), None)
        fence = live.grant.fence if live is not None else 2**62
        call = {"do": "close", "run_id": run_id, "attempt": attempt, "fence": fence}
        with contextlib.suppress(WireClosed, Unavailable, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._call(call)

    async def state(self, run_id: str, attempt: int) -> GateState:
        try:
            async with asyncio.timeout(STATE_S):
                return _state(await self._call({"do": "state", "run_id": run_id, "attempt": attempt}))
        except (WireClosed, Unavailable, TimeoutError):
            return GateState()

    async def ended(self, run_id: str, attempt: int) -> GateState:
        while True:
            await self._up.wait()
            try:
                return _state(await self._call({"do": "ended", "run_id": run_id, "attempt": attempt}))
            except (WireClosed, Unavailable):
                await asyncio.sleep(FIRST_PAUSE_S)

    async def _until_up(self) -> None:
        while self._wire is None:
            await self._up.wait()

    async def _open_all(self) -> None:
        """Let every attempt that is under way be served by the gateway that is there now, then let others in."""
        for key, live in list(self._live.items()):
            try:
                await self._give(key, live)
            except (SandboxError, Unavailable, Conflict, OSError) as error:
                # Its sandbox is dead or somebody else's: the step that drives it finds out by itself.
                log.warning("not_planted_again", run=key[0], attempt=key[1], why=str(error))
            except WireClosed:
                return
        self._up.set()

    async def _give(self, key: Key, live: _Live) -> None:
        """Tell the gateway, and plant what it does not have yet. Raises WireClosed as Unavailable."""
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:
            has = await self._open(live, [], [])
            missing = [port for port in live.ports if port not in has]
            if missing and live.plant is not None:
                sockets = list[socket.socket]()
                try:
                    for port in missing:
                        sockets.append(await live.plant(port))
                    await self._open(live, missing, sockets)
                finally:
                    for one in sockets:
                        one.close()

    async def _open(self, live: _Live, ports: Sequence[int], sockets: Sequence[socket.socket]) -> list[int]:
        call = {"do": "open", "grant": live.now().model_dump(mode="json"), "ports": list(ports)}
        async with asyncio.timeout(CALL_S):
            found = await self._call(call, [one.fileno() for one in sockets])
        return [int(port) for port in found]

    async def _call(self, message: Message, fds: Sequence[int] = ()) -> Any:
        """Raises Unavailable (no gateway, or it has gone), Conflict (fence lost)."""
        wire = self._wire
        if wire is None:
            raise Unavailable("gateway_unavailable", "there is no connection to the model gateway")
        self._next += 1
        number, answer = self._next, asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        try:
            await wire.send({"id": number, **message}, fds)
            return await answer
        except WireClosed as error:
            raise Unavailable("gateway_unavailable", "the model gateway has gone") from error
        finally:
            self._calls.pop(number, None)

    async def _read(self, wire: Wire) -> None:
        with contextlib.suppress(WireClosed):
            while True:
                message, fds = await wire.receive()
                for fd in fds:  # none are expected
                    os.close(fd)
                answer = self._calls.get(int(message["id"] or 0))
                if answer is None or answer.done():
                    continue
                if "error" in message:
                    kind = Conflict if message["error"] == "fence_lost" else Unavailable
                    answer.set_exception(kind(str(message["error"]), str(message.get("detail", ""))))
                else:
                    answer.set_result(message["ok"])

    def _lose(self, wire: Wire) -> None:
        self._wire = None
        self._up.clear()
        wire.close()
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(WireClosed("the gateway has gone"))


async def _connect(path: Path) -> Wire:
    """Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Through /proc, since a socket's address has room for 107 bytes only.
            await asyncio.get_running_loop().sock_connect(sock, f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
    except BaseException:
        sock.close()
        raise
    return Wire(sock)


def _state(found: dict[str, Any]) -> GateState:
    known = {field.name for field in fields(GateState)}
    return GateState(**{name: value for name, value in found.items() if name in known})

"""A worker's internal API (CONTRACTS 5): what remote drivers and debuggers do in the sandboxes that this host holds.

On a Unix socket that only our own user can open, or on TCP with the host's token; only the API process calls it. Every
call names run, attempt and fence, which are compared with the attempt's row: a caller that is behind is refused, and so
is one whose attempt does not run. It never attaches to a sandbox: what this process does not hold is not ready.
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from service.domain.errors import Conflict, Fault, FenceLost, Invalid, NotFound, Unavailable
from service.domain.run_states import AttemptState
from service.lifecycle.bridge_frames import BridgeBroken, Frame, read_frame, write_frame
from service.lifecycle.client_messages import ClientMessages
from service.lifecycle.context import Context
from service.lifecycle.desktop_opening import opening_of
from service.models.messages import GatewayAway
from service.sandboxes.contract import EngineError, LauncherLost, Sandbox, SandboxError, SandboxGone, ToolFailed
from service.store import attempts
from service.store.rows import AttemptRow
from service.workers import bridge_calls
from service.workers.bridge_desktop import DesktopCalls
from service.workers.bridge_vnc import pass_through

MAX_CALLS = 256
"""Most connections at once; further ones wait in the listener's queue."""
REQUEST_S = 60.0
"""For a request to come in whole."""
FACT = "bridge"
"""Key of a host's facts: where its bridge is, ``unix:<path>`` or ``tcp:<host>:<port>``."""
MESSAGE = "message"
"""The one call that is not the sandbox's: a word to the task's simulated client."""
DESKTOP, VNC = "desktop", "vnc"
SCREEN = (DESKTOP, VNC)
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BridgePlace:
    """Where to listen: a Unix socket, or (with a token that every request must bring) a TCP port."""

    path: Path
    tcp: tuple[str, int] | None = None
    token: str = ""

    @classmethod
    def below(cls, data_dir: Path, host_id: str, tcp: tuple[str, int] | None = None, token: str = "") -> "BridgePlace":
        """A socket's path has at most 107 bytes, a host's name any length: so the file is named by its hash."""
        name = hashlib.sha256(host_id.encode()).hexdigest()[:16]
        return cls(data_dir / "workers" / f"{name}.sock", tcp, token)

    @property
    def fact(self) -> str:
        return f"unix:{self.path}" if self.tcp is None else f"tcp:{self.tcp[0]}:{self.tcp[1]}"


class Refusal(Exception):
    """What the caller gets instead of an answer."""

    def __init__(self, type: str, detail: str) -> None:
        super().__init__(detail)
        self.type = type
        self.detail = detail


@asynccontextmanager
async def serve_bridge(ctx: Context, host_id: str, place: BridgePlace) -> AsyncGenerator[None]:
    """Serve calls until the block ends; calls under way are then cut. Raises OSError."""
    bridge = Bridge(ctx, host_id, place.token)
    if place.tcp is not None:
        server = await asyncio.start_server(bridge.serve, *place.tcp, limit=1 << 20)
    else:
        place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.path.unlink(missing_ok=True)
        before = os.umask(0o177)  # from the first moment nobody else can connect
        try:
            server = await asyncio.start_unix_server(bridge.serve, place.path, limit=1 << 20)
        finally:
            os.umask(before)
    try:
        yield
    finally:
        server.close()
        await bridge.close()


class Bridge:
    def __init__(self, ctx: Context, host_id: str, token: str) -> None:
        self._ctx = ctx
        self._messages = ClientMessages(ctx)
        self._desktops = DesktopCalls(ctx.desktops)
        self._host_id = host_id
        self._token = token
        self._free = asyncio.Semaphore(MAX_CALLS)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._desktops.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with self._free:
                await self._serve(reader, writer)
        except (BridgeBroken, TimeoutError) as error:
            log.debug("bridge_call_broken", error=str(error))
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_S):
            request = await read_frame(reader)
        try:
            answer = await self._answer(request, reader, writer)
        except Refusal as error:
            answer = Frame({"error": error.type, "detail": error.detail})
        await write_frame(writer, answer)

    async def _answer(self, request: Frame, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame:
        head = request.head
        if self._token and not hmac.compare_digest(str(head.get("token", "")).encode(), self._token.encode()):
            raise Refusal("bad_host_token", "the caller does not know this host's token")
        name = str(head.get("call"))
        call = bridge_calls.CALLS.get(name)
        if call is None and name not in (MESSAGE, *SCREEN):
            raise Refusal("unknown_call", f"no call {name!r}")
        attempt, sandbox = await self._sandbox(head, call is not None and call.kept)
        try:
            if name in SCREEN:
                return await self._screen(attempt, sandbox, request, reader, writer)
            if call is None:
                return await _until_hung_up(reader, True, lambda: self._message(attempt, sandbox, request))
            return await _until_hung_up(reader, call.hangs_up, lambda: call.do(sandbox, request, reader, writer))
        except ToolFailed as error:
            raise Refusal(f"tool:{error.type}", error.detail) from error
        except (LauncherLost, SandboxGone, EngineError) as error:
            raise Refusal("sandbox_lost", error.detail) from error
        except (KeyError, TypeError, ValueError) as error:
            raise Refusal("bad_call", f"{type(error).__name__}: {error}"[:200]) from error

    async def _screen(
        self,
        attempt: AttemptRow,
        sandbox: Sandbox,
        request: Frame,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> Frame:
        opening = opening_of(attempt)
        if opening is None:
            raise Refusal("tool:no_screen", "the run's surface has no screen")
        if request.head["call"] == VNC:
            return await pass_through(sandbox, reader, writer)
        return await _until_hung_up(reader, True, lambda: self._desktops.act(sandbox, opening, request.head))

    async def _message(self, attempt: AttemptRow, sandbox: Sandbox, request: Frame) -> Frame:
        """head: call_id; body: JSON {text, attachments}. ``done``: text, left."""
        said = json.loads(request.body)
        id = str(request.head["call_id"])
        try:
            reply = await self._messages.answer(attempt, sandbox, id, str(said["text"]), dict(said["attachments"]))
        except GatewayAway as error:
            raise Refusal("client:client_unavailable", error.detail) from error
        except (Conflict, Invalid, NotFound) as error:
            raise Refusal(f"client:{error.type}", error.detail) from error
        except (FenceLost, Unavailable) as error:
            raise Refusal("not_ready", error.type) from error
        except SandboxError:
            raise
        except Fault as error:
            raise Refusal("client:client_misconfigured", error.detail) from error
        return Frame({"done": {"text": reply.text, "left": reply.left}})

    async def _sandbox(self, head: dict[str, Any], kept: bool) -> tuple[AttemptRow, Sandbox]:
        """Return a running attempt of this host and its sandbox (``kept``: or one kept after its end). Raises Refusal."""
        states = (AttemptState.RUNNING, AttemptState.ENDED) if kept else (AttemptState.RUNNING,)
        try:
            async with self._ctx.db.reading() as tx:
                attempt = await attempts.get(tx, str(head.get("run")), int(head.get("attempt") or 0))
        except Unavailable as error:
            raise Refusal("not_ready", "the database is away") from error
        if attempt is None or attempt.host_id != self._host_id or attempt.state not in states:
            raise Refusal("not_running", "the attempt does not run on this host")
        if attempt.fence != head.get("fence"):
            raise Refusal("not_ready", "the attempt was taken over: read its fence again")
        sandbox = None if attempt.sandbox_id is None else self._ctx.sandboxes.find(attempt.sandbox_id)
        if sandbox is None:
            raise Refusal("not_ready", "the worker does not hold the sandbox yet")
        return attempt, sandbox


async def _until_hung_up(reader: asyncio.StreamReader, hangs_up: bool, work: Callable[[], Awaitable[Frame]]) -> Frame:
    """Do the work; with ``hangs_up`` nobody reads the connection meanwhile, and a caller that leaves ends the wait."""
    if not hangs_up:
        return await work()
    doing = asyncio.ensure_future(work())
    leaving = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise BridgeBroken("bridge_broken", "the caller left")
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)

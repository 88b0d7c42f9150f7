"""The API's side of the workers' bridges: one connection per call, nothing kept between them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from service.domain.errors import Conflict, Expected, Invalid, NotFound, TooLarge, Unavailable
from service.lifecycle.bridge_frames import BridgeBroken, Frame, read_frame, write_frame

CONNECT_S = 5.0
SLACK_S = 60.0
"""Beyond what a call may take by itself."""
MAX_TRANSFERS = 8
"""Most files at once on their way through this process, each in memory."""
OnPiece = Callable[[str, bytes], None]


class WorkerAway(Exception):
    """The worker cannot be asked now: it starts again, or has not yet taken over what an earlier one left."""


@dataclass(slots=True)
class BridgeClient:
    token: str = ""
    """What workers on TCP want to see; empty where all are on this machine."""
    transfers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_TRANSFERS))
    looked_at: set[str] = field(default_factory=set[str])
    """Runs whose screen somebody who does not drive them is shown just now."""
    viewers: Counter[str] = field(default_factory=Counter[str])
    """Run id to its open live views."""

    async def open_terminal(self, place: str, head: dict[str, Any], call: str = "terminal") -> "BridgeTerminal":
        """Ask the worker at ``place`` for a terminal, or another call that takes bytes both ways. Raises WorkerAway."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await _connect(place)
                await write_frame(writer, Frame({**head, "call": call, "token": self.token}))
        except (OSError, TimeoutError, ValueError, BridgeBroken) as error:
            raise WorkerAway(str(error)) from error
        return BridgeTerminal(reader, writer)

    async def call(
        self,
        place: str,
        head: dict[str, Any],
        body: bytes = b"",
        *,
        seconds: float = 0.0,
        on_piece: OnPiece | None = None,
    ) -> Frame:
        """Ask the worker at ``place`` (a host's fact) and return its last frame, whose head is what was ``done``.

        ``seconds``: what the call itself may take. Raises WorkerAway, and Expected for what cannot be done.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await _connect(place)
        except (OSError, TimeoutError, ValueError) as error:
            raise WorkerAway(str(error)) from error
        try:
            async with asyncio.timeout(seconds + SLACK_S):
                await write_frame(writer, Frame({**head, "token": self.token}, body))
                return await _answer(reader, on_piece)
        except (BridgeBroken, TimeoutError) as error:
            raise WorkerAway(str(error)) from error
        finally:
            writer.close()


class BridgeTerminal:
    """A terminal in a sandbox, over one connection to its worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes = b"", resize: tuple[int, int] | None = None) -> None:
        """Type, or say how large the window is. Raises WorkerAway."""
        try:
            await write_frame(self._writer, Frame({} if resize is None else {"resize": list(resize)}, data))
        except BridgeBroken as error:
            raise WorkerAway(str(error)) from error

    async def next(self) -> Frame:
        """Return the next bytes, or a last frame whose head has ``code`` and ``signal``. Raises WorkerAway, Expected."""
        try:
            frame = await read_frame(self._reader)
        except BridgeBroken as error:
            raise WorkerAway(str(error)) from error
        if "error" in frame.head:
            raise _refusal(str(frame.head["error"]), str(frame.head.get("detail", "")))
        return Frame(dict(frame.head["done"])) if "done" in frame.head else Frame({}, frame.body)

    def close(self) -> None:
        self._writer.close()


async def _connect(place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    kind, _, address = place.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(address)
    if kind != "tcp":
        raise ValueError("the worker has no bridge")
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _answer(reader: asyncio.StreamReader, on_piece: OnPiece | None) -> Frame:
    while True:
        frame = await read_frame(reader)
        if "error" in frame.head:
            raise _refusal(str(frame.head["error"]), str(frame.head.get("detail", "")))
        if "done" in frame.head:
            return Frame(dict(frame.head["done"]), frame.body)
        if on_piece is not None:
            on_piece(str(frame.head.get("stream")), frame.body)


def _refusal(type: str, detail: str) -> Exception:
    if type in ("not_ready", "sandbox_lost", "not_running"):
        # What has ended for good is known from the attempt's row, which is read before the next try.
        return WorkerAway(f"{type}: {detail}")
    if type.startswith("client:"):
        return client_problem(type.removeprefix("client:"), detail)
    if not type.startswith("tool:"):
        return Invalid("bad_call", detail)
    return tool_problem(type.removeprefix("tool:"), detail)


def tool_problem(cause: str, detail: str) -> Expected:
    """Return what a tool's failure is to a caller; ``cause`` comes from inside the sandbox."""
    if cause in ("enoent", "no_such_file", "enotdir"):
        return NotFound("file_not_found", detail, cause=cause)
    if cause == "too_large":
        return TooLarge("file_too_large", detail, cause=cause)
    if cause in ("not_a_file", "eisdir", "eloop"):
        return Conflict("not_a_file", detail, cause=cause)
    return Invalid("tool_failed", detail or cause, cause=cause)


def client_problem(cause: str, detail: str) -> Expected:
    """Return what it means that the task's simulated client did not answer."""
    if cause == "client_unavailable":
        return Unavailable(cause, detail)
    if cause == "no_messages_left":
        return Conflict(cause, detail)
    return Invalid(cause, detail)

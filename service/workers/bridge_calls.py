"""The calls of a worker's bridge, each on a sandbox that was checked already.

Raises what the sandbox raises; KeyError, TypeError and ValueError for a request that lacks something.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

from service.lifecycle.bridge_frames import MAX_BODY, BridgeBroken, Frame, read_frame, write_frame
from service.lifecycle.keeping import freeze
from service.sandboxes.contract import WORKSPACE, ExecResult, Sandbox, Terminal

Do = Callable[[Sandbox, Frame, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Frame]]


@dataclass(frozen=True, slots=True)
class Call:
    do: Do
    hangs_up: bool = True
    """The caller sends nothing after its request, so that its leaving can be heard."""
    kept: bool = False
    """Possible too while a sandbox is kept after the attempt's end."""


async def _exec(sandbox: Sandbox, request: Frame, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame:
    """head: argv, cwd?, env?, timeout_s, limit_bytes, call_id, stream?; body: standard input.

    With ``stream``, frames ``{"stream": name}`` with bytes come first. ``done``: code, signal, stdout_bytes, truncated,
    timed_out; the body is stdout, then stderr.
    """
    head = request.head
    pieces: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()  # bounded by the call's own limit
    env: dict[str, str] | None = head.get("env")
    running = asyncio.ensure_future(
        sandbox.exec(
            [str(part) for part in head["argv"]],
            stdin=request.body,
            cwd=str(head.get("cwd") or WORKSPACE),
            env=env,
            timeout_s=float(head["timeout_s"]),
            limit_bytes=int(head["limit_bytes"]),
            call_id=str(head["call_id"]),
            on_output=(lambda name, data: pieces.put_nowait((name, data))) if head.get("stream") else None,
        )
    )
    try:
        while not running.done():
            piece = asyncio.ensure_future(pieces.get())
            await asyncio.wait({running, piece}, return_when=asyncio.FIRST_COMPLETED)
            if piece.done():
                await _send(writer, *piece.result())
            else:
                piece.cancel()
        while not pieces.empty():
            await _send(writer, *pieces.get_nowait())
        return _done(running.result())
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _send(writer: asyncio.StreamWriter, stream: str, data: bytes) -> None:
    await write_frame(writer, Frame({"stream": stream}, data))


def _done(result: ExecResult) -> Frame:
    done: dict[str, Any] = {
        "code": result.code,
        "signal": result.signal,
        "stdout_bytes": len(result.stdout),
        "truncated": result.truncated,
        "timed_out": result.timed_out,
    }
    return Frame({"done": done}, result.stdout + result.stderr)


async def _read(sandbox: Sandbox, request: Frame, *_: object) -> Frame:
    limit = min(MAX_BODY, int(request.head.get("limit_bytes") or MAX_BODY))
    return Frame({"done": {}}, await sandbox.read_file(str(request.head["path"]), limit_bytes=limit))


async def _write(sandbox: Sandbox, request: Frame, *_: object) -> Frame:
    mode = int(request.head.get("mode") or 0o644) & 0o777
    await sandbox.write_file(str(request.head["path"]), request.body, mode=mode)
    return Frame({"done": {}})


async def _list(sandbox: Sandbox, request: Frame, *_: object) -> Frame:
    found = await sandbox.list_files(str(request.head["path"]), limit=min(1000, int(request.head["limit"])))
    entries = json.dumps([asdict(e) for e in found.entries]).encode()
    return Frame({"done": {"truncated": found.truncated}}, entries)


async def _terminal(
    sandbox: Sandbox, request: Frame, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Frame:
    """head: argv, env, rows, columns. Then both sides send frames: bytes, and from the caller ``{"resize": [rows, columns]}``.

    ``done``: code, signal. A caller that leaves ends the program. ``frozen``: the sandbox is kept, and thawed for this.
    """
    head = request.head
    if head.get("frozen"):
        await sandbox.unpause()
    env: dict[str, str] = head["env"]
    argv = [str(part) for part in head["argv"]]
    terminal = await sandbox.open_terminal(argv, env=env, rows=int(head["rows"]), columns=int(head["columns"]))
    typing = asyncio.create_task(_type(terminal, reader))
    showing = asyncio.create_task(_show(terminal, writer))
    try:
        await asyncio.wait({typing, showing}, return_when=asyncio.FIRST_COMPLETED)
        if not showing.done():
            raise BridgeBroken("bridge_broken", "the caller left")
        showing.result()
        end = await terminal.end()
        return Frame({"done": {"code": end.code, "signal": end.signal}})
    finally:
        for task in (typing, showing):
            task.cancel()
        await asyncio.gather(typing, showing, return_exceptions=True)
        await terminal.close()
        if head.get("frozen"):
            await freeze(sandbox)


async def _show(terminal: Terminal, writer: asyncio.StreamWriter) -> None:
    while data := await terminal.read():
        await write_frame(writer, Frame({"stream": "terminal"}, data))


async def _type(terminal: Terminal, reader: asyncio.StreamReader) -> None:
    while True:
        frame = await read_frame(reader)
        if frame.body:
            await terminal.write(frame.body)
        size = frame.head.get("resize")
        if size is not None:
            await terminal.resize(int(size[0]), int(size[1]))


CALLS = {
    "exec": Call(_exec),
    "read_file": Call(_read),
    "write_file": Call(_write),
    "list_files": Call(_list),
    "terminal": Call(_terminal, hangs_up=False, kept=True),
}

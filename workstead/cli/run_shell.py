"""``workstead runs shell``: a terminal in a run's live sandbox."""

import json
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import typer

from workstead.cli.common import RunId, fail, in_words
from workstead.cli.watch import note
from workstead.config import resolve
from workstead.websocket import BINARY, CLOSE, TEXT, WebSocket

PIECE = 16 << 10
ENDED_BY_SIGNAL = 128
"""As shells do: an exit code of so much more than the signal's number."""


@in_words
def shell(run_id: RunId) -> None:
    """Open a terminal in the sandbox of a running run. The run is *assisted* from then on: reports leave it out.

    The exit code is the shell's. Needs a token with runs:debug.
    """
    raise typer.Exit(open_shell(run_id))


def open_shell(run_id: str) -> int:
    """Carry bytes between this terminal and the sandbox until the shell there ends; return its exit code."""
    there, size = resolve(None, None), shutil.get_terminal_size()
    query = f"?rows={size.lines}&columns={size.columns}"
    url = f"{there.url.rstrip('/')}/v1/runs/{quote(run_id, safe='')}/shell{query}"
    connection = WebSocket.open(url, {"Authorization": f"Bearer {there.token}"})
    try:
        with _raw_terminal(), _window(connection):
            return _carry(connection)
    finally:
        connection.close()


def _carry(connection: WebSocket) -> int:
    typing, stdin = True, sys.stdin.fileno()
    while True:
        sources = [connection, *([stdin] if typing else [])]
        ready = [connection] if connection.pending else select.select(sources, [], [])[0]
        if stdin in ready:
            data = os.read(stdin, PIECE)
            typing = bool(data)
            connection.send(BINARY, data or b"\x04")  # the end of a pipe is what Ctrl-D is at a terminal
        if connection in ready:
            message = connection.receive()
            if message.kind == BINARY:
                _show(message.data)
            elif message.kind == TEXT:
                return _exit_code(message.data)
            elif message.kind == CLOSE:
                raise fail(message.data[2:].decode(errors="replace") or "the shell was closed")


def _show(data: bytes) -> None:
    # What a sandbox prints goes to the terminal as it is: that is what a terminal session is.
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _exit_code(data: bytes) -> int:
    end: dict[str, Any] = json.loads(data)["exit"]
    code, number = end.get("code"), end.get("signal")
    return int(code) if code is not None else ENDED_BY_SIGNAL + int(number or 0)


@contextmanager
def _raw_terminal() -> Generator[None]:
    if not sys.stdin.isatty():
        yield
        return
    note("a shell in the sandbox; it ends with exit or Ctrl-D")
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextmanager
def _window(connection: WebSocket) -> Generator[None]:
    """Tell the other side when this terminal's window changes."""

    def changed(*_: object) -> None:
        size = shutil.get_terminal_size()
        connection.send(TEXT, json.dumps({"resize": [size.lines, size.columns]}).encode())

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)

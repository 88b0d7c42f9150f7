"""The server between readers and office program: one question at a time, each within its time, and a fresh office program
after one that did not answer."""

import json
import os
import select
import signal
import socket
import time
from pathlib import Path
from typing import Any

from service.evidence.extraction.inside.office_driver import drive

LINE = 65536
"""Most bytes of a question or an answer."""
START_S = 60.0
CONVERT_S = 45.0
"""For one question, once it is its turn."""
MOST_STARTS = 20
"""In one room: a document that kills the program costs the others seconds."""
_ASK_S = 5.0
Answer = dict[str, Any]
_DIED: Answer = {"error": "cannot_open", "detail": "the office program did not survive it"}


def serve(listener: socket.socket, folder: Path) -> None:
    """Answer until killed."""
    instance = Instance(folder)
    instance.begin()
    while True:
        peer, _ = listener.accept()
        with peer:
            try:
                peer.settimeout(_ASK_S)
                question = peer.makefile("rb").readline(LINE)
                if question.endswith(b"\n") and not _gone(peer):
                    peer.sendall(json.dumps(instance.answer(question)).encode() + b"\n")
            except OSError:
                continue  # the reader was killed while it waited


def _gone(peer: socket.socket) -> bool:
    """Whether whoever asked hung up."""
    readable, _, _ = select.select([peer], [], [], 0)
    return bool(readable) and not peer.recv(1, socket.MSG_PEEK)


class Instance:
    """A driver with its office program: one thing, replaced whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self._driver: int | None = None
        self._up = False
        self._ask = self._told = -1

    def begin(self) -> None:
        """Start it with a profile that no document has touched; it comes up while others work."""
        self._starts += 1
        asked, self._ask = os.pipe()
        self._told, tell = os.pipe()
        self._driver = os.fork()
        if not self._driver:
            _be_driver(asked, tell, self._folder / f"profile{self._starts}")
        os.close(asked)
        os.close(tell)

    def answer(self, question: bytes) -> Answer:
        """Return what the driver says of the question, or why it said nothing.

        A program that ends is asked once more: an earlier document may have ended it.
        """
        first = self._asked(question)
        return self._asked(question) if first == _DIED else first

    def _asked(self, question: bytes) -> Answer:
        if self._driver is None:
            if self._starts >= MOST_STARTS:
                return _failed("office_unavailable", "it was started too often")
            self.begin()
        try:
            self._up = self._up or self._line(START_S) == b"up\n"
            if not self._up:
                raise TimeoutError
        except TimeoutError:
            self.end()
            return _failed("office_unavailable", "it does not start")
        return self._answered(question)

    def _answered(self, question: bytes) -> Answer:
        try:
            os.write(self._ask, question)
            said = self._line(CONVERT_S)
            return dict(json.loads(said))
        except TimeoutError:
            self.end()
            return _failed("timeout", f"the office program did not end within {CONVERT_S:g} s")
        except (OSError, ValueError, TypeError):
            self.end()
            return _DIED

    def _line(self, seconds: float) -> bytes:
        """Return the driver's next line, empty at its end. Raises TimeoutError."""
        until, said = time.monotonic() + seconds, b""
        while not said.endswith(b"\n") and len(said) < LINE:
            ready, _, _ = select.select([self._told], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            piece = os.read(self._told, LINE)
            if not piece:
                return b""
            said += piece
        return said

    def end(self) -> None:
        """Kill it; the next question starts another."""
        assert self._driver is not None
        os.kill(self._driver, signal.SIGKILL)
        os.waitpid(self._driver, 0)
        os.close(self._ask)
        os.close(self._told)
        self._driver, self._up = None, False


def _failed(error: str, detail: str) -> Answer:
    return {"error": error, "detail": detail}


def _be_driver(asked: int, tell: int, profile: Path) -> None:
    try:
        drive(asked, tell, profile)
    finally:
        os._exit(1)

"""The control socket: the worker opens, renews and closes attempts here and asks how they are (CONTRACTS 6)."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pydantic
import structlog

from service.domain.errors import WorksteadError
from service.domain.grants import Grant
from service.gateway.endpoints import Endpoints
from service.lifecycle.gate_wire import Message, Wire, WireClosed

MAX_CONNECTIONS = 16
MAX_CALLS = 4096
"""Calls of one connection that wait for their answer."""
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Control:
    """Only root and our own user may speak here; the socket's mode says the same."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, listener: socket.socket) -> None:
        """Accept for ever."""
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("control_accept_failed", error=str(error))
                await asyncio.sleep(0.5)
                continue
            if len(self._tasks) >= MAX_CONNECTIONS:
                sock.close()
                continue
            self._start(self._tasks, self._talk(Wire(sock)))

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _talk(self, wire: Wire) -> None:
        calls: set[asyncio.Task[None]] = set()
        try:
            if wire.peer_uid() not in {0, os.geteuid()}:
                log.warning("control_refused", uid=wire.peer_uid())
                return
            while len(calls) < MAX_CALLS:
                message, fds = await wire.receive()
                self._start(calls, self._answer(wire, message, [socket.socket(fileno=fd) for fd in fds]))
        except WireClosed:
            return
        finally:
            wire.close()
            for call in list(calls):
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    @staticmethod
    def _start(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _answer(self, wire: Wire, message: Message, sockets: list[socket.socket]) -> None:
        try:
            answer: Message = {"ok": await self._do(message, sockets)}
        except WorksteadError as error:
            answer = {"error": error.type, "detail": error.detail}
        except (pydantic.ValidationError, KeyError, TypeError, ValueError) as error:
            answer = {"error": "bad_message", "detail": str(error)[:500]}
        except OSError as error:
            answer = {"error": "listener_failed", "detail": str(error)}
        if "error" in answer:
            for sock in sockets:
                sock.close()
        with contextlib.suppress(WireClosed):
            await wire.send({"id": message.get("id"), **answer})

    async def _do(self, message: Message, sockets: list[socket.socket]) -> Any:
        match message["do"]:
            case "open":
                ports = [int(port) for port in message["ports"]]
                grant = Grant.model_validate(message["grant"])
                return await self._endpoints.open(grant, dict(zip(ports, sockets, strict=True)))
            case "close":
                await self._endpoints.close(_key(message), int(message["fence"]))
                return None
            case "state":
                return asdict(self._endpoints.state(_key(message)))
            case "ended":
                return asdict(await self._endpoints.ended(_key(message)))
            case unknown:
                raise ValueError(f"nobody knows how to {unknown!r}")


def _key(message: Message) -> tuple[str, int]:
    return str(message["run_id"]), int(message["attempt"])


def bind(path: Path, mode: int = 0o600) -> socket.socket:
    """Return a listening Unix socket at ``path``; one that an earlier process left is replaced at once."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    temporary = f".{path.name}-{os.getpid()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        # Through /proc, since a socket's address has room for 107 bytes only.
        sock.bind(f"/proc/self/fd/{folder}/{temporary}")
        os.chmod(temporary, mode, dir_fd=folder)
        sock.listen(64)
        os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock

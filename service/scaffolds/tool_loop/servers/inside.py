"""Keeps one MCP server running inside the sandbox and brings it one request.

Ships as text (``python3 -I -c``) into images that we do not know: the standard library of Python 3.9, nothing around it.
A request comes as JSON on standard input, its answer goes as JSON to standard output. The first one for a server leaves
a process behind that owns it; the next ones find that by a socket. It is the agent's domain: what it says is data,
bounded here and checked again outside.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, BinaryIO, cast

VERSION = "2025-06-18"
LINE_BYTES = 4 << 20
START_S = 60.0
LAST_S = 5.0
LOOK_S = 2.0
"""How often the owner looks whether its socket, and so its sandbox, is still there."""
MOST_CALLS = 16
METHOD_NOT_FOUND = -32601


class Bad(Exception):
    """The request cannot be done; the text is for the model."""


def obj(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def parsed(line: bytes) -> dict[str, Any]:
    try:
        return obj(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def workspace() -> str:
    return os.environ.get("WORKSPACE") or "/workspace"


def state_dir(top: str) -> str:
    path = os.path.join(top, ".home", ".tool_agent")
    os.makedirs(path, exist_ok=True)
    return path


class Owner:
    """Of one server: its pipes, and who waits for which answer."""

    def __init__(self, job: dict[str, Any], top: str, path: str) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.waiting: dict[int, Waiter] = {}
        self.n = 0
        self.dead = ""
        self.ready = threading.Event()
        self.log = "mcp-%s.log" % job["server"]
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                job["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=top,
                env={**os.environ, **job["env"]}, start_new_session=True,
            )  # fmt: skip

    def start(self) -> None:
        threading.Thread(target=self.read, daemon=True).start()
        about = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "workstead", "version": "1"}}
        try:
            self.ask("initialize", about, START_S)
            self.send({"method": "notifications/initialized"})
        except Bad as error:
            self.dead = self.dead or "it did not start: %s" % error
            kill(self.child)
        self.ready.set()

    def ask(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        waiter = Waiter()
        with self.lock:
            self.n += 1
            n = self.n
            self.waiting[n] = waiter
        try:
            self.send({"id": n, "method": method, "params": params})
            if self.dead:
                raise Bad(self.dead)
            if not waiter.event.wait(timeout_s):
                self.send({"method": "notifications/cancelled", "params": {"requestId": n}})
                raise Bad("no answer in %g s" % timeout_s)
        finally:
            self.waiting.pop(n, None)
        if not waiter.answer:
            raise Bad(self.dead or "no answer")
        error = waiter.answer.get("error")
        if error is not None:
            raise Bad("error %s: %s" % (obj(error).get("code"), str(obj(error).get("message"))[:2000]))
        return obj(waiter.answer.get("result"))

    def send(self, body: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n"
        pipe = cast("BinaryIO", self.child.stdin)
        try:
            with self.lock:
                pipe.write(data)
                pipe.flush()
        except (OSError, ValueError):
            raise Bad(self.dead or "it takes no requests any more") from None

    def read(self) -> None:
        pipe = cast("BinaryIO", self.child.stdout)
        while True:
            line = pipe.readline(LINE_BYTES)
            if not line or (len(line) == LINE_BYTES and not line.endswith(b"\n")):
                break
            self.take(parsed(line))
        self.dead = self.dead or ("an answer had more than %d bytes" % LINE_BYTES if line else self.last_words())
        with contextlib.suppress(OSError):
            os.unlink(self.path)  # whoever comes next starts it anew
        for waiter in list(self.waiting.values()):
            waiter.event.set()
        kill(self.child)

    def take(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        if "method" not in message:
            waiter = self.waiting.get(id_) if isinstance(id_, int) else None
            if waiter is not None:
                waiter.answer = message
                waiter.event.set()
        elif id_ is not None:
            error = {"code": METHOD_NOT_FOUND, "message": "this client offers no such thing"}
            told: dict[str, Any] = {"result": {}} if message["method"] == "ping" else {"error": error}
            # In a thread of its own: a server that does not read must not stop us from reading.
            threading.Thread(target=self.tell, args=({"id": id_, **told},), daemon=True).start()

    def tell(self, body: dict[str, Any]) -> None:
        with contextlib.suppress(Bad):
            self.send(body)

    def last_words(self) -> str:
        try:
            code: Any = self.child.wait(2)
        except subprocess.TimeoutExpired:
            code = "none"
        with open(self.log, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 1000))
            return "the server ended (exit code %s): %s" % (code, log.read().decode("utf-8", "replace"))


class Waiter:
    def __init__(self) -> None:
        self.event = threading.Event()
        self.answer: dict[str, Any] = {}


def kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)


def serve(listener: socket.socket, job: dict[str, Any], top: str, path: str) -> None:
    """Own the server until it is dead or the sandbox is gone."""
    try:
        owner = Owner(job, top, path)
    except (OSError, ValueError) as error:
        refuse(listener, "%s cannot be started: %s" % (job["argv"][0], error))
        return
    threading.Thread(target=owner.start, daemon=True).start()
    room = threading.BoundedSemaphore(MOST_CALLS)
    listener.settimeout(LOOK_S)
    answering: list[threading.Thread] = []
    try:
        while os.path.exists(path):
            try:
                peer, _ = listener.accept()
            except socket.timeout:
                continue
            answering = [one for one in answering if one.is_alive()]
            answering.append(threading.Thread(target=answer, args=(owner, peer, room), daemon=True))
            answering[-1].start()
    finally:
        kill(owner.child)
        owner.child.wait()
        until = time.monotonic() + LAST_S
        for one in answering:  # who asked is told how it ended
            one.join(max(0.0, until - time.monotonic()))


def refuse(listener: socket.socket, text: str) -> None:
    """Tell the one who had it started; the next one tries again."""
    listener.settimeout(START_S)
    peer, _ = listener.accept()
    with peer:
        peer.recv(1)
        peer.sendall(json.dumps({"ok": False, "text": text}).encode() + b"\n")


def answer(owner: Owner, peer: socket.socket, room: threading.BoundedSemaphore) -> None:
    with peer, peer.makefile("rb") as lines:
        request = parsed(lines.readline(LINE_BYTES))
        said: dict[str, Any] = {"ok": False, "text": "too many calls at once"}
        if room.acquire(blocking=False):
            try:
                said = {"ok": True, "result": done(owner, request)}
            except Bad as error:
                said = {"ok": False, "text": str(error)}
            finally:
                room.release()
        with contextlib.suppress(OSError):  # who asked may be gone
            peer.sendall(json.dumps(said).encode() + b"\n")


def done(owner: Owner, request: dict[str, Any]) -> dict[str, Any]:
    if not owner.ready.wait(START_S):
        raise Bad("it did not start in %g s" % START_S)
    if owner.dead:
        raise Bad(owner.dead)
    return owner.ask(str(request["method"]), obj(request.get("params")), float(request["timeout_s"]))


def reach(job: dict[str, Any], top: str) -> socket.socket:
    """Return a connection to the server's owner, which is started where there is none."""
    name = "mcp-%s.sock" % job["server"]
    with open("mcp-%s.lock" % job["server"], "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return connected(name)
        except OSError:
            pass
        if os.path.lexists(name):
            os.unlink(name)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen(MOST_CALLS)
        if os.fork() == 0:
            lock.close()
            become_owner(listener, job, top, os.path.abspath(name))
        listener.close()
        return connected(name)


def connected(name: str) -> socket.socket:
    """The name is relative: a path of more than 107 bytes fits into no address."""
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(name)
    except OSError:
        peer.close()
        raise
    return peer


def become_owner(listener: socket.socket, job: dict[str, Any], top: str, path: str) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    try:
        serve(listener, job, top, path)
    finally:
        os._exit(0)


def request(job: dict[str, Any]) -> dict[str, Any]:
    top = workspace()
    os.chdir(state_dir(top))
    with reach(job, top) as peer, peer.makefile("rb") as lines:
        peer.settimeout(START_S + job["timeout_s"] + 5)
        asked = {name: job[name] for name in ("method", "params", "timeout_s")}
        peer.sendall(json.dumps(asked).encode() + b"\n")
        said = parsed(lines.readline(2 * LINE_BYTES))
    return said or {"ok": False, "text": "the server's owner ended"}


if __name__ == "__main__":
    began = time.monotonic()
    try:
        told = request(json.load(sys.stdin))
    except OSError as error:
        told = {"ok": False, "text": "no answer after %.0f s: %s" % (time.monotonic() - began, error)}
    json.dump(told, sys.stdout)

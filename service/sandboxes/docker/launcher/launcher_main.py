"""The launcher itself: one thread that serves, one that connects. Read ``program.py`` first."""

# ruff: noqa: SIM105, PTH100, PTH116, PTH123, TID251, PLC0415 - contextlib and pathlib cost start-up time; no loop waits

from __future__ import annotations

import _thread
import errno
import os
import struct
import sys
import time
from select import EPOLLIN

import launcher_wire as wire
from launcher_calls import Calls
from launcher_channel import Channel, Hub
from launcher_command import Command
from launcher_files import listing
from launcher_output import Program
from launcher_pipe import Pipe
from launcher_small import signal, socket
from launcher_stream import Streams
from launcher_terminal import Terminal
from launcher_wire import Refused, number, pack, unpack

CONNECT_S = 60
FIRST_WAIT_S, LONGEST_WAIT_S = 0.02, 0.5
PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4
SEALED = "--sealed"


def _interrupt(_signal: int, _frame: object) -> None:
    """Only the wake-up descriptor matters."""


class Launcher(Hub):
    def __init__(self, path: str, workspace: str) -> None:
        super().__init__(os.fsencode(workspace))
        self.inherited = dict(os.environb)
        self.calls = Calls(self.loop, self.workspace, self._answer)
        self.streams = Streams()
        self.fresh: list[socket.socket] = []
        self.gate = _thread.allocate_lock()
        self.authenticated = False
        woken, self.wake = os.pipe()
        for fd in (woken, self.wake):
            os.set_blocking(fd, False)
        self.loop.watch(woken, EPOLLIN, (lambda: self._woken(woken)))
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _interrupt)
        self.gate.acquire()
        # Connecting may wait its turn behind others in the listener's queue, so it has a thread of its own.
        _thread.start_new_thread(self._connect, (path,))

    def run(self) -> None:
        while True:
            self.loop.turn()
            if self.channel is not None:
                self.channel.flush()

    def _connect(self, path: str) -> None:
        wait = FIRST_WAIT_S
        while True:
            sock = socket.socket(socket.AF_UNIX)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", CONNECT_S, 0))
            try:
                sock.connect(path)
            except OSError:
                sock.close()
            else:
                sock.setblocking(False)
                self.fresh.append(sock)
                os.write(self.wake, b"c")
                self.gate.acquire()  # until it is lost
                if self.authenticated:
                    wait = FIRST_WAIT_S
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_S)

    def _woken(self, fd: int) -> None:
        try:
            os.read(fd, 4096)
        except BlockingIOError:
            pass
        while self.fresh:
            self.authenticated = False
            self.channel = Channel(self, self.fresh.pop())
        if self.program is not None and self.program.process is not None and self.program.process.wall_s is None:
            self.program.process.reap()
        self.calls.reap()
        self.streams.reap()

    def disconnect(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            self.authenticated = channel.ready
            channel.close()
            self.calls.disconnected()
            self.streams.disconnected()
            self.gate.release()

    def followed(self) -> bytes | None:
        return self.calls.piece() or self.streams.piece()

    def _answer(self, request: int, result: bytes) -> None:
        if self.channel is not None:
            self.channel.send(wire.RESULT, request, result)

    def handle(self, channel: Channel, kind: int, flag: int, value: int, body: bytes) -> None:
        if kind == wire.ACK:
            if self.program is not None:
                self.program.ack(flag & 1, value)
        elif kind == wire.CHUNK:
            channel.files.chunk(body, flag == 1)
        elif kind == wire.FILE:
            channel.files.begin(unpack(body), last=bool(flag & 1), first=bool(flag & 2))
        elif kind == wire.TYPE:
            self.streams.take(value, flag, body, unpack)
        elif kind == wire.FORGET:
            self.calls.forget(body, flag == 1)
        else:
            try:
                self._request(channel, kind, value, unpack(body), flag)
            except Refused as error:
                self._answer(value, pack(b"error", error.type.encode(), error.detail.encode("utf-8", "replace")))
            except OSError as error:
                name = errno.errorcode.get(error.errno or 0, "os_error").lower()
                self._answer(value, pack(b"error", name.encode(), os.strerror(error.errno or 0).encode()))

    def _request(self, channel: Channel, kind: int, request: int, fields: list[bytes], flag: int) -> None:
        if kind == wire.EXEC:
            alone = bool(flag & 1)
            if alone and self.program is not None:
                raise Refused("not_alone", "a program was started")
            self.calls.ask(request, fields, self.inherited, alone=alone, follow=bool(flag & 2))
        elif kind == wire.START:
            self._answer(request, pack(b"ok", self._start(fields)))
        elif kind == wire.RESUME:
            self._resume(channel, request, [int(field) for field in fields], waited=bool(flag & 1))
        elif kind == wire.COMMIT:
            channel.files.commit()
            self._answer(request, pack(b"ok"))
        elif kind == wire.SIGNAL:
            process = None if self.program is None else self.program.process
            self._answer(request, pack(b"ok", b"sent" if process is not None and process.tell(int(fields[0])) else b""))
        elif kind == wire.READ:
            channel.files.open(request, fields[0], int(fields[1]))
        elif kind in (wire.OPEN, wire.PIPE):
            self._open(request, kind, fields)
        elif kind == wire.LIST:
            self._answer(request, listing(self.workspace, fields[0], int(fields[1])))
        else:
            raise ValueError("unknown message")

    def _open(self, request: int, kind: int, fields: list[bytes]) -> None:
        if kind == wire.PIPE:
            command = Command(fields, self.inherited)
            self.streams.begin(request, Pipe, lambda: Pipe(self.loop, request, command))
        else:
            size = int(fields[0]), int(fields[1])
            command = Command(fields[2:], self.inherited)
            self.streams.begin(request, Terminal, lambda: Terminal(self.loop, request, command, size))

    def _start(self, fields: list[bytes]) -> bytes:
        if self.program is not None:
            return b"already"
        self.program = Program(self.loop, Command(fields[1:], self.inherited), int(fields[0]) / 1000)
        return b"started"

    def _resume(self, channel: Channel, request: int, acknowledged: list[int], *, waited: bool) -> None:
        """Send output from the last acknowledged byte on, and the exit (again); say how long the program has waited."""
        bases = [0, 0]
        if self.program is not None:
            for stream, offset in enumerate(acknowledged):
                self.program.ack(stream, offset)
            self.program.rewind()
            bases = self.program.base
        channel.subscribed, channel.exit_sent = True, False
        waits = [number(self.program.waited_s * 1e6 if self.program else 0)] if waited else []
        channel.send(wire.RESUMED, request, pack(*[number(base) for base in bases], *waits))


def make_undumpable() -> bool:
    """PR_SET_DUMPABLE = 0, so that nobody with our uid reads the key out of /proc/<pid> or attaches to us."""
    try:
        import ctypes  # not in every minimal Python
    except ImportError:
        return False
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return bool(libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)


def seal_by_exec(script: str, arguments: list[str]) -> None:
    """Without ctypes: a program that its user cannot read is not dumpable, so run the interpreter from such a copy."""
    fd = os.memfd_create("python3", os.MFD_CLOEXEC)
    with open(sys.executable, "rb") as source:
        while os.write(fd, source.read(1 << 20)):
            pass
    os.fchmod(fd, 0o111)
    command = [sys.executable, "-I", "-S", os.path.abspath(script), *arguments, SEALED]
    os.execv(f"/proc/self/fd/{fd}", command)  # noqa: S606 - a fixed command


def is_sealed() -> bool:
    # The files of an undumpable process belong to root.
    return os.stat("/proc/self/environ").st_uid != os.getuid()


def close_inherited() -> None:
    while os.open(os.devnull, os.O_RDWR) <= 2:
        pass
    os.closerange(3, 256)


def main(script: str, arguments: list[str]) -> int:
    names = {"--socket": "/run/workstead/launcher.sock", "--workspace": "/workspace"}
    for name in names:
        if name in arguments[:-1]:
            names[name] = os.path.abspath(arguments[arguments.index(name) + 1])
    close_inherited()
    if not make_undumpable():
        if SEALED not in arguments:
            try:
                seal_by_exec(script, arguments)
            except OSError:
                pass
        if not is_sealed():
            sys.stderr.write("workstead launcher: cannot protect its memory (needs ctypes, or memfd and /proc)\n")
            return 78
    os.umask(0o022)
    Launcher(names["--socket"], names["--workspace"]).run()
    return 0

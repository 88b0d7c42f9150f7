"""The host's side of one sandbox's launcher (CONTRACTS 2 and 3)."""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from service.sandboxes.contract import (
    STREAMS,
    WORKSPACE,
    Command,
    ExecResult,
    Exited,
    FileSource,
    Frame,
    LauncherLost,
    Listing,
    OnOutput,
    ToolFailed,
)
from service.sandboxes.docker.framing import Kind, Message, Violation, pack
from service.sandboxes.docker.link_answers import (
    command_body,
    command_fields,
    milliseconds,
    read_answer,
    read_exec_result,
    read_listing,
    start_body,
    text,
)
from service.sandboxes.docker.link_files import read_ahead
from service.sandboxes.docker.link_install import install_launcher
from service.sandboxes.docker.link_output import OutputFeed, OutputTail
from service.sandboxes.docker.link_peer import Disconnected, Peer
from service.sandboxes.docker.link_server import Listener
from service.sandboxes.docker.link_stream import LinkPipe, LinkTerminal

SOCKET_NAME = "launcher.sock"
DEADLINE_FILE = ".home/deadline"
START_S = 30.0
FILES_S = 60.0
SIGNAL_S = 5.0
BYTES_PER_S = 4 << 20
"""Slowest transfer that is waited for, beyond ``FILES_S``."""
EXEC_SLACK_S = 30.0
FOLLOW = 2
"""Flag of a tool call whose output is wanted as it comes."""
TELL_WAITED = 1
"""Flag of a wish for output: the answer also says how long the program has waited for us. Earlier launchers ignore it."""
MAX_EXECS = 32
"""Tool calls sent at a time; the launcher runs as many. Further ones wait here, their time-out not running."""

Send = Callable[[Peer, int], Awaitable[None]]
S = TypeVar("S")


class LauncherLink:
    """One per sandbox, in the worker. Short losses of the connection are ridden out; requests are sent again.

    Every method raises LauncherLost once ``mark_lost`` or ``close`` was called, or when its own deadline passes.
    """

    def __init__(
        self, control_dir: Path, key: bytes, *, may_key: bool, reconnect_s: float = 30.0, shared: Path | None = None
    ) -> None:
        """``may_key``: the sandbox was just made and never keyed. ``reconnect_s``: how long ``output`` waits for it.

        ``shared``: see ``install_launcher``.
        """
        self.key = key
        self.rejected = 0
        """Connections that ended without having proved that they hold the key."""
        self._control_dir = control_dir
        self._shared = shared
        self._may_key = may_key
        self._reconnect_s = reconnect_s
        self._listener: Listener | None = None
        self._peer: Peer | None = None
        self._peers: set[Peer] = set()
        self._up = asyncio.Event()
        self._lost: str | None = None
        self._numbers = itertools.count(1)
        self._acknowledged: dict[str, int] = dict.fromkeys(STREAMS, 0)
        self._waited_s = 0.0
        self._resumed = asyncio.Event()
        self._feed: OutputFeed | None = None
        self._uploading = asyncio.Lock()
        self._execs = asyncio.Semaphore(MAX_EXECS)

    # -- the connection ------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        return self._peer is not None

    @property
    def pending(self) -> int:
        """Connections that have not proved themselves yet."""
        return sum(not peer.authenticated for peer in self._peers)

    async def listen(self) -> None:
        """(Re)bind the socket (0666) in the control directory (0755) and put the launcher's files there. OSError."""
        await asyncio.to_thread(install_launcher, self._control_dir, self._shared)
        if self._listener is not None:
            await self._listener.close()
        self._listener = Listener(self._control_dir / SOCKET_NAME, self._new_peer)

    async def wait_connected(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected()
        except TimeoutError:
            raise LauncherLost("launcher_lost", f"the launcher did not connect within {timeout_s:g} s") from None

    def mark_lost(self, why: str) -> None:
        """The container died: everything that waits ends now with LauncherLost(why)."""
        if self._lost is None:
            self._lost = why
        for peer in list(self._peers):
            peer.abort()
        self._up.set()
        if self._feed is not None:
            self._feed.wake()

    def drop_connection(self) -> None:
        """Cut the connection off; the launcher comes back by itself. Nothing is lost by it."""
        if self._peer is not None:
            self._peer.abort()

    async def close(self) -> None:
        self.mark_lost("the link is closed")
        if self._listener is not None:
            await self._listener.close()
            self._listener = None

    async def _connected(self) -> Peer:
        while True:
            if self._lost is not None:
                raise LauncherLost("launcher_lost", self._lost)
            if self._peer is not None:
                return self._peer
            await self._up.wait()

    def _new_peer(self) -> Peer:
        peer = Peer(self)
        self._peers.add(peer)
        return peer

    def may_hand_over_key(self) -> bool:
        allowed, self._may_key = self._may_key, False
        return allowed

    def peer_ready(self, peer: Peer) -> None:
        self._may_key = False
        former, self._peer = self._peer, peer
        if former is not None:
            former.abort()
        self._up.set()
        if self._feed is not None:
            self._feed.wake()

    def peer_ended(self, peer: Peer) -> None:
        self._peers.discard(peer)
        if not peer.authenticated:
            self.rejected += 1
        elif self._peer is peer:
            self._peer = None
            if self._lost is None:
                self._up.clear()
            if self._feed is not None:
                self._feed.wake()

    def peer_sent(self, peer: Peer, message: Message) -> None:
        if self._feed is not None and peer is self._peer:
            self._feed.take(message)

    async def _ask(self, send: Send, deadline_s: float, what: str) -> list[bytes]:
        """Send a request, again after each loss of the connection, until it is answered."""
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    peer, number = await self._connected(), next(self._numbers)
                    future = peer.expect(number)
                    try:
                        await send(peer, number)
                        return read_answer(await future)
                    except Disconnected:
                        continue
                    finally:
                        peer.forget(number)
        except TimeoutError:
            raise LauncherLost("launcher_lost", f"no answer to {what} within {deadline_s:g} s") from None
        except Violation as error:
            raise LauncherLost("launcher_lost", f"nonsense in answer to {what}: {error}") from None

    # -- the program ---------------------------------------------------------------------------------------------

    async def start(self, command: Command) -> None:
        """Start the program; a repeat with a program already started does nothing."""
        body = start_body(command)
        await self._ask(lambda peer, n: peer.send(Kind.START, number=n, body=body), START_S, "start")

    async def signal(self, number: int) -> bool:
        """Send a signal to the program; False if none runs."""
        answer = await self._ask(
            lambda peer, n: peer.send(Kind.SIGNAL, number=n, body=pack(b"%d" % number)), SIGNAL_S, "signal"
        )
        return bool(answer and answer[0])

    async def output(self) -> AsyncGenerator[Frame | Exited, None]:
        """Yield frames from the last acknowledged offset on, then the exit. One reader: a later call ends the earlier.

        A new link knows no offsets: it begins where the launcher last heard an acknowledgement, or at what ``ack`` was
        told before.
        """
        feed = self._feed = OutputFeed(self._acknowledged, self._flows)
        peer: Peer | None = None
        try:
            while self._feed is feed:
                item = feed.pop()
                if item is not None:
                    yield item
                    if isinstance(item, Exited):
                        return
                elif peer is None or peer is not self._peer:
                    peer = await self._subscribe(feed)
                else:
                    await feed.wait()
        finally:
            if self._feed is feed:
                self._feed = None

    async def _subscribe(self, feed: OutputFeed) -> Peer:
        await self.wait_connected(self._reconnect_s)
        peer, number = await self._connected(), next(self._numbers)
        feed.subscribe(number)
        offsets = pack(*[b"%d" % self._acknowledged[name] for name in STREAMS])
        peer.post(Kind.RESUME, flag=TELL_WAITED, number=number, body=offsets)
        return peer

    def _flows(self, waited_s: float) -> None:
        self._waited_s = waited_s
        self._resumed.set()

    async def waited_for_host_s(self) -> float:
        """See Sandbox.waited_for_host_s."""
        await self._resumed.wait()
        return self._waited_s

    async def ack(self, stream: str, offset: int) -> None:
        """Everything of ``stream`` before ``offset`` is stored. Sent again with the next connection if there is none."""
        self._acknowledged[stream] = max(offset, self._acknowledged[stream])
        if self._peer is not None:
            self._peer.post(Kind.ACK, flag=STREAMS.index(stream), number=self._acknowledged[stream])

    # -- tool calls ----------------------------------------------------------------------------------------------

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str = WORKSPACE,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        limit_bytes: int = 1 << 20,
        call_id: str | None = None,
        alone: bool = False,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """See Sandbox.exec. ``env`` null: the container's own. At most 4 MiB are kept of both streams together.

        The result of a call with a ``call_id`` stays in the launcher until ``forget_call`` (the last 64 of them do):
        it can be asked for again after a crash of ours. Cancelling does not stop the program; its time-out does.
        """
        id = text(call_id or f"-{uuid.uuid4().hex}")
        fields = command_fields(argv, env, cwd, stdin)
        body = command_body(id, milliseconds(timeout_s), b"%d" % max(0, limit_bytes), *fields)
        tail = None if on_output is None else OutputTail(on_output, limit_bytes)
        flag = int(alone) | (0 if tail is None else FOLLOW)

        async def send(peer: Peer, number: int) -> None:
            if tail is not None:
                peer.follow(number, tail.begin())
            await peer.send(Kind.EXEC, flag=flag, number=number, body=body)

        async with self._execs:
            answer = await self._ask(send, timeout_s + EXEC_SLACK_S, "exec")
            if call_id is None and self._peer is not None:
                self._peer.post(Kind.FORGET, body=id)
        try:
            result = read_exec_result(answer)
        except Violation as error:
            raise LauncherLost("launcher_lost", f"nonsense in the result of exec: {error}") from None
        if tail is not None:
            tail.end(result)
        return result

    async def forget_call(self, call_id: str) -> None:
        """The call's result is stored: the launcher need not keep it. It will not be run again under this id."""
        peer = await self._connected()
        peer.post(Kind.FORGET, flag=1, body=text(call_id))

    async def open_terminal(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str = WORKSPACE, rows: int, columns: int
    ) -> LinkTerminal:
        """Start an interactive program. It ends with this connection. Raises ToolFailed (a bad command)."""
        body = command_body(b"%d" % rows, b"%d" % columns, *command_fields(argv, env, cwd, b""))
        return await self._begin(LinkTerminal, Kind.OPEN, body)

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str = WORKSPACE) -> LinkPipe:
        """Start a resident helper. It ends with this connection. Raises ToolFailed (a bad command)."""
        return await self._begin(LinkPipe, Kind.PIPE, command_body(*command_fields(argv, env, cwd, b"")))

    async def _begin(self, make: Callable[[Peer, int], S], kind: Kind, body: bytes) -> S:
        try:
            async with asyncio.timeout(START_S):
                peer, number = await self._connected(), next(self._numbers)
                stream = make(peer, number)
                await peer.send(kind, number=number, body=body)
        except Disconnected:
            raise LauncherLost("launcher_lost", "the connection was lost") from None
        except TimeoutError:
            raise LauncherLost("launcher_lost", f"the launcher took nothing for {START_S:g} s") from None
        return stream

    # -- files ---------------------------------------------------------------------------------------------------

    async def write_files(self, files: Sequence[FileSource]) -> None:
        """Write files below the workspace: parents made, each renamed into place, no link followed. ToolFailed."""
        size = sum(len(f.data or b"") if f.file is None else f.file.stat().st_size for f in files)
        async with self._uploading:
            await self._ask(
                lambda peer, n: self._upload(peer, n, files), FILES_S + size / BYTES_PER_S, "the writing of files"
            )

    async def _upload(self, peer: Peer, number: int, files: Sequence[FileSource]) -> None:
        try:
            async for piece in read_ahead(files):
                await peer.send(piece.kind, flag=piece.flag, body=piece.body)
        except OSError as error:
            peer.abort()  # the launcher drops the half-written file
            raise ToolFailed("source_unreadable", str(error)) from None
        await peer.send(Kind.COMMIT, number=number)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self.write_files([FileSource(path, data=data, mode=mode)])

    async def read_file(self, path: str, *, limit_bytes: int = 16 << 20) -> bytes:
        """Read a regular file below the workspace, no link followed. Raises ToolFailed (``too_large`` over the limit)."""
        body = pack(text(path), b"%d" % limit_bytes)
        got = bytearray()

        async def send(peer: Peer, number: int) -> None:
            nonlocal got
            got = peer.collect(number, limit_bytes)
            await peer.send(Kind.READ, number=number, body=body)

        await self._ask(send, FILES_S + limit_bytes / BYTES_PER_S, "the reading of a file")
        return bytes(got)

    async def list_files(self, path: str, *, limit: int) -> Listing:
        """List a folder below the workspace, no link followed. Raises ToolFailed."""
        body = pack(text(path), b"%d" % limit)
        answer = await self._ask(lambda peer, n: peer.send(Kind.LIST, number=n, body=body), FILES_S, "a listing")
        try:
            return read_listing(answer)
        except Violation as error:
            raise LauncherLost("launcher_lost", f"nonsense in a listing: {error}") from None

    async def announce_deadline(self, seconds: float) -> None:
        """Write ``/workspace/.home/deadline``: {"deadline_unix": seconds}. Best effort: a refusal is no error."""
        body = json.dumps({"deadline_unix": round(time.time() + seconds, 3)}).encode() + b"\n"
        try:
            await self.write_file(DEADLINE_FILE, body)
        except ToolFailed:
            return

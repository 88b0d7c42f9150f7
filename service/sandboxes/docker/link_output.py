"""The program's output on its way from the connection to one reader, without loss or double."""

import asyncio
from collections import deque
from collections.abc import Callable

from service.domain.run_states import ExitReport
from service.sandboxes.contract import STREAMS, ExecResult, Exited, Frame, OnOutput
from service.sandboxes.docker.framing import FRAME, RING, Kind, Message, Violation, integer, natural, unpack
from service.sandboxes.docker.link_peer import Follower


class OutputTail:
    """A tool call's output on its way to whoever follows it: each byte once, over all connections."""

    def __init__(self, on_output: OnOutput, limit: int) -> None:
        self._on_output = on_output
        self._limit = limit
        self._given = [0, 0]

    def begin(self) -> Follower:
        """Return what takes the data of one connection, which begin at the first byte again."""
        came = [0, 0]

        def take(stream: int, data: bytes) -> None:
            if stream not in (0, 1) or came[stream] + len(data) > self._limit:
                raise Violation("more output of a call than asked for")
            start, came[stream] = came[stream], came[stream] + len(data)
            self._give(stream, data[max(0, self._given[stream] - start) :])

        return take

    def end(self, result: ExecResult) -> None:
        """Give what the result has beyond it."""
        for stream, data in enumerate((result.stdout, result.stderr)):
            self._give(stream, data[self._given[stream] :])

    def _give(self, stream: int, data: bytes) -> None:
        if data:
            self._given[stream] += len(data)
            self._on_output(STREAMS[stream], data)


class OutputFeed:
    """Bounded by the launcher's ring: whoever sends more than it may without an acknowledgement is cut off."""

    def __init__(self, acknowledged: dict[str, int], on_resumed: Callable[[float], None] = lambda _: None) -> None:
        """``on_resumed`` is told for how many seconds the program has waited for us, whenever output flows again."""
        self._on_resumed = on_resumed
        self._next = [acknowledged[name] for name in STREAMS]
        self._items: deque[Frame | Exited] = deque()
        self._waiting_bytes = 0
        self._request: int | None = None
        self._flowing = False
        self._woken = asyncio.Event()

    def subscribe(self, request: int) -> None:
        """Output counts again from the answer to this request on."""
        self._request, self._flowing = request, False

    def wake(self) -> None:
        self._woken.set()

    async def wait(self) -> None:
        await self._woken.wait()
        self._woken.clear()

    def pop(self) -> Frame | Exited | None:
        if not self._items:
            return None
        item = self._items.popleft()
        if isinstance(item, Frame):
            self._waiting_bytes -= len(item.data)
        return item

    def take(self, message: Message) -> None:
        """Take a message of the connection. Raises Violation."""
        if message.kind == Kind.RESUMED and message.number == self._request:
            bases = [natural(field) for field in unpack(message.body)]
            if len(bases) not in (len(STREAMS), len(STREAMS) + 1):  # earlier launchers do not tell of waits
                raise Violation("not the streams we know")
            waited_us = bases.pop() if len(bases) > len(STREAMS) else 0
            self._next = [max(base, known) for base, known in zip(bases, self._next, strict=True)]
            self._flowing = True
            self._on_resumed(waited_us / 1e6)
        elif not self._flowing:
            return  # sent before our request was seen; it comes again
        elif message.kind == Kind.OUTPUT:
            self._frame(message)
        elif message.kind == Kind.EXIT:
            self._items.append(parse_exit(message.body))
            self.wake()

    def _frame(self, message: Message) -> None:
        stream, data = message.flag, message.body
        if stream >= len(STREAMS) or not 0 < len(data) <= FRAME or message.number > self._next[stream]:
            raise Violation("a frame out of order")
        data = data[self._next[stream] - message.number :]
        if not data:
            return
        self._waiting_bytes += len(data)
        if self._waiting_bytes > RING + FRAME:
            raise Violation("more output than the ring holds")
        self._items.append(Frame(STREAMS[stream], self._next[stream], data))
        self._next[stream] += len(data)
        self.wake()


def parse_exit(body: bytes) -> Exited:
    """Read the launcher's last word. Raises Violation."""
    fields = unpack(body)
    if len(fields) != 6 + len(STREAMS):
        raise Violation("not an exit report")
    code, signal = integer(fields[0]), integer(fields[1])
    if (code is None) == (signal is None):
        raise Violation("an exit has a code or a signal")
    wall_us, rss, waited_us = (natural(field) for field in fields[2:5])
    report = ExitReport(code=code, signal=signal, wall_s=wall_us / 1e6, max_rss_bytes=rss or None)
    totals = {name: natural(field) for name, field in zip(STREAMS, fields[6:], strict=True)}
    return Exited(report, waited_for_host_s=waited_us / 1e6, totals=totals, deadline_hit=fields[5] == b"1")

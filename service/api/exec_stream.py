"""A program's output as Server-Sent Events while it runs: ``output`` events, then ``done`` or ``error``."""

import asyncio
import codecs
import json

from starlette.types import Send

from service.api.drive_actions import ExecRequest, exec_call, exec_result, executed
from service.api.driving import Driven
from service.api.problems import problem_members
from service.api.sse import HEARTBEAT_S, SseStream, send_text
from service.domain.errors import Expected


class ExecStream(SseStream):
    """The program is not stopped when the client leaves: its time-out does that."""

    def __init__(self, driven: Driven, body: ExecRequest) -> None:
        super().__init__(driven.state, driven.caller.token.id)
        self._driven = driven
        self._body = body
        self._id = body.id()
        self._pieces: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()  # bounded by the call's output limit
        new = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: new("replace") for name in ("stdout", "stderr")}

    async def follow(self, send: Send) -> None:
        running = asyncio.ensure_future(self._run())
        try:
            while not (running.done() and self._pieces.empty()):
                await self._next(send, running)
            await send_text(send, self._last(running))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _run(self) -> str:
        action, head = exec_call(self._body, self._id)
        frame = await self._driven.perform(
            action,
            {**head, "stream": True},
            self._body.stdin.encode(),
            seconds=self._body.timeout_s,
            on_piece=lambda stream, data: self._pieces.put_nowait((stream, data)),
            environment=True,
            result=exec_result,
        )
        done = executed(frame, self._id).model_dump(mode="json", exclude={"stdout", "stderr"})
        return f"event: done\ndata: {json.dumps(done)}\n\n"

    async def _next(self, send: Send, running: "asyncio.Future[str]") -> None:
        piece = asyncio.ensure_future(self._pieces.get())
        try:
            await asyncio.wait({running, piece}, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
            if piece.done():
                await send_text(send, self._output(*piece.result()))
            elif not running.done():
                await send_text(send, ": still here\n\n")
        finally:
            piece.cancel()

    def _output(self, stream: str, data: bytes, *, final: bool = False) -> str:
        text = self._decoders[stream].decode(data, final)
        return f"event: output\ndata: {json.dumps({'stream': stream, 'text': text})}\n\n" if text else ""

    def _last(self, running: "asyncio.Future[str]") -> str:
        rest = "".join(self._output(stream, b"", final=True) for stream in self._decoders)
        error = running.exception()
        if error is None:
            return rest + running.result()
        if not isinstance(error, Expected):
            raise error
        members = problem_members(error.status, error.type, error.detail)
        return f"{rest}event: error\ndata: {json.dumps(members)}\n\n"

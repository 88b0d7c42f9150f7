"""One sandbox's screen: deskd started over the launcher's connection, and batches given to it one after the other.

A session is closed at the first thing that breaks the wire's rules, at a batch over its time and when deskd ends; it is
never used again then (:class:`~service.desktop.desktops.Desktops` opens another). What a batch that was under way has
done is not known, so that none is ever sent twice.
"""

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from service.desktop.pace import seconds_of
from service.desktop.performed import Performed
from service.desktop.wire import (
    MAX_BODY,
    MAX_HEAD,
    BadAnswer,
    Head,
    Inbox,
    TooLarge,
    encode,
    perform_request,
    read_fault,
    read_hello,
    read_performed,
)
from service.domain.agents import Surface
from service.domain.desktop import Batch, Size
from service.domain.errors import Fault
from service.sandboxes.contract import LauncherLost, Pipe, Sandbox, ToolFailed

PROGRAM = ("python3", "-I", "/usr/local/lib/deskd/main.py")
HELLO_S = 30.0
ABORT_S = 2.0
"""For a batch whose caller left to let go of everything; deskd is closed after it."""
MOST_WAITING = 8
BUSY, LOST, BAD_ANSWER, TIMED_OUT, TOO_LARGE = "busy", "desktop_lost", "bad_answer", "timed_out", "too_large"
NO_DESKD = "no_desktop_in_image"
Answer = tuple[Head, bytes]
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DesktopLost(Fault):
    """Deskd did not come up, or has ended: ``no_desktop_in_image``, ``desktop_lost``, ``bad_answer``, ``timed_out``, or
    deskd's own word. The sandbox's word about itself, never evidence of a failure of ours."""


class DesktopSession:
    def __init__(self, sandbox_id: str, pipe: Pipe) -> None:
        self.size = Size(width=1, height=1)
        """Of the screen, as it was last said."""
        self.lost: DesktopLost | LauncherLost | None = None
        """Why nothing can be done any more."""
        self._sandbox_id = sandbox_id
        self._pipe = pipe
        self._inbox = Inbox()
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._turn = asyncio.Lock()
        self._here = 0
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        sandbox: Sandbox,
        *,
        env: Mapping[str, str],
        surface: Surface,
        size: Size,
        program: Sequence[str] = PROGRAM,
    ) -> "DesktopSession":
        """Start deskd and wait until the screen is there (30 s). Raises DesktopLost, LauncherLost, SandboxGone."""
        screen = ["--surface", surface.value, "--size", f"{size.width}x{size.height}"]
        try:
            session = cls(sandbox.id, await sandbox.open_pipe([*program, *screen], env=env))
        except ToolFailed as error:
            raise DesktopLost(LOST, error.detail) from error
        try:
            async with asyncio.timeout(HELLO_S):
                await session._greet()
        except TimeoutError:
            await session.close()
            raise DesktopLost(TIMED_OUT, f"no screen within {HELLO_S:g} s") from None
        except ToolFailed as error:
            await session.close()
            raise DesktopLost(*await _why(sandbox, program, env, error.detail)) from error
        except BaseException:
            await session.close()
            raise
        return session

    async def perform(self, batch: Batch, *, before: bool = False) -> Performed:
        """Do a batch, after those that came first; ``before`` asks for a picture of how it was. Raises LauncherLost.

        What goes wrong inside is in the outcome's ``error``. If the caller is cancelled, deskd is told to stop.
        """
        if self._here > MOST_WAITING:
            return Performed(error=BUSY, detail=f"{MOST_WAITING} batches wait already")
        self._here += 1
        try:
            async with self._turn:
                return await self._perform(batch, before)
        finally:
            self._here -= 1

    async def close(self) -> None:
        """End deskd, which lets go of every key and button; the screen itself stays. Idempotent."""
        await self._lose(DesktopLost(LOST, "the session was closed"))
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _greet(self) -> None:
        while True:
            frames = list(self._feed(await self._piece()))
            if frames:
                break
        fault = read_fault(frames[0][0].get("fatal"))
        if fault is not None:
            raise DesktopLost(*fault)
        try:
            width, height = read_hello(frames[0][0])
        except BadAnswer as error:
            raise DesktopLost(BAD_ANSWER, str(error)) from error
        self.size = Size(width=width, height=height)
        self._inbox.max_head, self._inbox.max_body = MAX_HEAD, MAX_BODY
        self._reading = asyncio.create_task(self._read(frames[1:]), name=f"desktop {self._sandbox_id}")

    async def _perform(self, batch: Batch, before: bool) -> Performed:
        began = time.monotonic()
        number = next(self._numbers)
        try:
            request = encode(perform_request(number, batch, before=before))
            head, body = await self._exchange(number, request, seconds_of(batch))
            done = read_performed(head, body, batch, before=before)
        except TooLarge as error:
            return Performed(error=TOO_LARGE, detail=str(error))
        except BadAnswer as error:
            lost = DesktopLost(BAD_ANSWER, str(error))
            await self._lose(lost)
            return _failed(lost, began)
        except DesktopLost as error:
            return _failed(error, began)
        if done.state is not None:
            self.size = Size(width=done.state.width, height=done.state.height)
        return replace(done, took_s=time.monotonic() - began)

    async def _exchange(self, number: int, request: bytes, seconds: float) -> Answer:
        """Send and await the answer. Raises DesktopLost, LauncherLost; whoever gives up the wait stops the batch."""
        answer = self._expect(number)
        sent = False
        try:
            async with asyncio.timeout(seconds):
                await self._pipe.write(request)
                sent = True
                return await asyncio.shield(answer)  # deskd answers a batch that is stopped, too
        except TimeoutError:
            lost = DesktopLost(TIMED_OUT, f"no answer within {seconds:.0f} s")
            await self._lose(lost)
            raise lost from None
        except asyncio.CancelledError:
            await self._abort(answer if sent else None)
            raise
        except LauncherLost as error:
            await self._lose(error)
            raise
        finally:
            self._answers.pop(number, None)

    async def _abort(self, answer: asyncio.Future[Answer] | None) -> None:
        """Wait until the batch was stopped; a deskd that does not (or was given half a request) is closed."""
        stopped = False
        number = next(self._numbers)
        try:
            if answer is not None and self.lost is None:
                heard = self._expect(number)
                async with asyncio.timeout(ABORT_S):
                    await self._pipe.write(encode({"id": number, "do": "abort"}))
                    await asyncio.gather(heard, answer)
                    stopped = True
        except (TimeoutError, DesktopLost, LauncherLost) as error:
            log.info("desktop_not_stopped", sandbox=self._sandbox_id, error=str(error))
        finally:
            self._answers.pop(number, None)
            if not stopped:
                await self._lose(DesktopLost(LOST, "it did not stop when it was told to"))

    def _expect(self, number: int) -> asyncio.Future[Answer]:
        """Raises DesktopLost, LauncherLost."""
        if self.lost is not None:
            raise self.lost
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        return future

    async def _read(self, frames: Sequence[Answer]) -> None:
        try:
            for frame in frames:
                self._take(*frame)
            while True:
                piece = await self._piece()
                if not self._answers:  # also half a frame of 24 MiB that never ends
                    raise DesktopLost(BAD_ANSWER, "it speaks unasked")
                for frame in self._feed(piece):
                    self._take(*frame)
        except ToolFailed as error:
            await self._lose(DesktopLost(LOST, error.detail))
        except (DesktopLost, LauncherLost) as error:
            await self._lose(error)

    def _feed(self, data: bytes) -> list[Answer]:
        try:
            return list(self._inbox.feed(data))
        except BadAnswer as error:
            raise DesktopLost(BAD_ANSWER, str(error)) from error

    def _take(self, head: Head, body: bytes) -> None:
        number = head.get("id")
        future = self._answers.pop(number, None) if isinstance(number, int) else None
        if future is None:
            raise DesktopLost(BAD_ANSWER, "an answer to nothing that was asked")
        if not future.done():
            future.set_result((head, body))

    async def _piece(self) -> bytes:
        """Return bytes. Raises ToolFailed (it ended), LauncherLost."""
        data = await self._pipe.read()
        if not data:
            end = await self._pipe.end()
            how = f"status {end.code}" if end.code is not None else f"signal {end.signal}"
            raise ToolFailed("ended", f"the action server ended with {how}")
        return data

    async def _lose(self, why: DesktopLost | LauncherLost) -> None:
        if self.lost is not None:
            return
        self.lost = why
        answers, self._answers = self._answers, {}
        for future in answers.values():
            if not future.done():
                future.set_exception(why)
                future.exception()  # seen: its caller may have left
        with suppress(LauncherLost):
            await self._pipe.close()


async def _why(sandbox: Sandbox, program: Sequence[str], env: Mapping[str, str], detail: str) -> tuple[str, str]:
    """Tell an image that has no deskd from one that does not come up."""
    found = await sandbox.exec(["test", "-e", program[-1]], env=env, timeout_s=10)
    if found.code == 1:
        return NO_DESKD, f"the image has no {program[-1]}"
    return LOST, detail


def _failed(why: DesktopLost, began: float) -> Performed:
    return Performed(error=why.type, detail=why.detail, took_s=time.monotonic() - began)

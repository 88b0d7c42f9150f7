"""Step *stream*, during ``drive``: frames → spool and events, acknowledged after the commit.

Called by ``drive``. The first bytes after a pause are written at once; while output flows, a write every few
milliseconds takes what has gathered. Memory: what gathers is bounded, and a full buffer stops the reading, hence the
launcher, hence the program. Past the run's budget bytes are only kept raw and counted.
"""

import asyncio
import contextlib

from service.domain.cleaning import clean_str, clean_text
from service.domain.limits import MIB
from service.domain.run_states import Flag
from service.lifecycle.agent_lines import AgentReader
from service.lifecycle.context import Context
from service.lifecycle.recorder import Batch, Budget, Recorder
from service.lifecycle.work import Work
from service.sandboxes.contract import Exited, LauncherLost, Sandbox
from service.store import output, runs
from service.store.database import Tx, retrying
from service.store.fences import check_fence
from service.store.rows import AttemptRow

LONGEST_PACE_S = 0.5
"""Most seconds between two writes of flowing output, however slow the database is."""
FULL_BYTES = 2 * MIB
"""Pending bytes at which reading stops until a write has ended."""
EAGER_BYTES = 256 << 10
"""Pending bytes that do not wait for the pace."""
EAGER_FLOOD_BYTES = MIB
"""The same, once output is only counted; less than the launcher's ring, so that the program need not wait."""


def recorder_for(ctx: Context, work: Work, attempt: AttemptRow) -> Recorder:
    """Return a recorder that continues where the attempt's stored offsets end."""
    run, parser = work.run, work.scaffold.line_parser(work.manifest)
    budget = Budget(exhausted=Flag.OUTPUT_TRUNCATED in run.flags)
    budget.text_bytes -= run.output_text_bytes
    budget.events -= run.event_count
    reader = None if parser is None else AgentReader(parser)
    recorder = Recorder(clean_text, "jsonl" if work.manifest.parser == "jsonl" else "text", budget, reader)
    recorder.resume(attempt.offsets, ctx.spool(attempt))
    return recorder


class OutputPump:
    """Moves one attempt's output. ``run`` ends with the program's exit; ``close`` stores what is left."""

    def __init__(self, ctx: Context, attempt: AttemptRow, sandbox: Sandbox, recorder: Recorder) -> None:
        self._ctx = ctx
        self._attempt = attempt
        self._sandbox = sandbox
        self._recorder = recorder
        self._spool = ctx.spool(attempt)
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._last_write = -1e9
        self._last_frame = asyncio.get_running_loop().time()
        self._write_s = 0.0

    async def run(self) -> Exited:
        """Return the launcher's last word. Raises LauncherLost, FenceLost, Unavailable (database away for long)."""
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: self._work.set())
        try:
            while not reader.done():
                await self._work.wait()
                self._work.clear()
                await self._pace(reader)
                await self._write(final=False)
                self._room.set()
            return reader.result()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    @property
    def silent_s(self) -> float:
        """Seconds since the program's last output, or since the watching began."""
        return asyncio.get_running_loop().time() - self._last_frame

    def wrote_since(self, moment: float) -> bool:
        """Tell whether anything was stored after this moment of the loop's clock."""
        return self._last_write > moment

    async def close(self) -> None:
        """Store everything that was received, an unfinished code point included."""
        await self._write(final=True)

    async def _read(self) -> Exited:
        async for item in self._sandbox.output():
            if isinstance(item, Exited):
                return item
            try:
                self._recorder.feed(item)
            except ValueError as error:  # from inside the sandbox: nothing of ours
                raise LauncherLost("bad_frames", str(error)) from error
            self._last_frame = asyncio.get_running_loop().time()
            self._work.set()
            while self._recorder.pending_bytes >= FULL_BYTES:
                self._room.clear()
                await self._room.wait()
        raise LauncherLost("launcher_lost", "the output ended without an exit")

    async def _pace(self, reader: "asyncio.Task[Exited]") -> None:
        timing = self._ctx.timing
        # Never more than half of the time is spent on writing: many runs at once then write less often, not late.
        pace = max(timing.flush_flood_s if self._recorder.exhausted else timing.flush_s, self._write_s)
        left = self._last_write + pace - asyncio.get_running_loop().time()
        eager = EAGER_FLOOD_BYTES if self._recorder.exhausted else EAGER_BYTES
        while left > 0 and not reader.done() and self._recorder.pending_bytes < eager:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._work.wait()
                self._work.clear()
            left = self._last_write + pace - asyncio.get_running_loop().time()

    async def _write(self, *, final: bool) -> None:
        batch = self._recorder.batch(self._ctx.clock.now(), final=final)
        if not batch.ends:
            return
        began = asyncio.get_running_loop().time()
        for stream, offset, data in batch.raw:
            self._spool.write(stream, offset, data)
        stored = {**self._recorder.stored(), **batch.ends}

        async def store(tx: Tx) -> None:
            await _store(self._ctx, tx, self._attempt, batch, stored)

        await retrying(self._ctx.db, store, self._ctx.timing.database_patience_s)
        self._recorder.commit(batch)
        self._ctx.crash.reach("drive.streaming")
        self._last_write = asyncio.get_running_loop().time()
        self._write_s = min(self._last_write - began, LONGEST_PACE_S)
        with contextlib.suppress(LauncherLost):
            # A lost acknowledgement is repeated by the next one; if there is none, the bytes come again and are dropped.
            for stream, end in batch.ends.items():
                await self._sandbox.ack(stream, end)


async def _store(ctx: Context, tx: Tx, attempt: AttemptRow, batch: Batch, stored: dict[str, int]) -> None:
    if batch.events:
        await ctx.log.append(tx, attempt.run_id, attempt.n, attempt.fence, batch.events)
    else:
        await check_fence(tx, attempt.run_id, attempt.n, attempt.fence)
    await output.note(
        tx,
        attempt,
        stored,
        text_bytes=batch.text_bytes,
        turns=batch.turns,
        tool_calls=batch.tool_calls,
        doing=None if batch.doing is None else clean_str(batch.doing)[0],
    )
    if batch.truncated:
        await runs.add_flags(tx, attempt.run_id, [Flag.OUTPUT_TRUNCATED])

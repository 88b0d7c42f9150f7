"""Makes the integrity report of a sealed deliverable: batches of files into rooms, answers taken as untrusted."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Fault
from service.domain.integrity import MAX_FILES, FileReport, IntegrityReport, ProblemType
from service.domain.limits import GIB, MIB, Limits
from service.evidence.batches import IN_MEMORY_BYTES, Item, batches, fits_in_memory
from service.evidence.integrity.answers import Answer, answers
from service.evidence.integrity.bundle import checker_bundle
from service.evidence.integrity.quick import begun, judged_here, with_problem
from service.sandboxes.contract import FileSource, LauncherLost, Sandbox, SandboxError, ToolFailed
from service.sandboxes.rooms import Rooms

IMAGE = "documents"
BATCH_BYTES = 512 * MIB
BATCH_FILES = 200
ANSWER_BYTES = 16 * MIB
FILE_S, BATCH_S = 5.0, 30.0
"""A batch gets so many seconds, and so many for each of its files; a file's own limits are the checker's."""
MOST_S = 600.0
"""Of one report."""
_LIMITS = Limits(memory_bytes=2 * GIB, cpus=2, pids=128, disk_bytes=GIB, inodes=4096)
_SMALL = _LIMITS.model_copy(update={"disk_bytes": 2 * IN_MEMORY_BYTES})
_ARGV = ("/usr/bin/python3", "-I", "check.pyz", "in")
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ReportUnavailable(Fault):
    """It cannot be made now; ``type`` says why: ``no_rooms``, ``room_failed``, ``deliverable_missing``."""


async def make_report(
    entries: Sequence[ArtifactEntry], content_of: Callable[[str], Path], rooms: Rooms | None
) -> IntegrityReport:
    """Look at every regular file. ``content_of`` gives the file of a digest.

    Raises ReportUnavailable. A file that breaks its reader, or whose line is missing, is a line of the report.
    """
    files = [e for e in entries if e.kind is EntryKind.FILE and e.sha256 is not None]
    listed = files[:MAX_FILES]
    try:
        reports, pending = await asyncio.to_thread(_sort, listed, content_of)
    except OSError as error:
        raise ReportUnavailable("deliverable_missing", str(error)) from error
    if pending and rooms is None:
        raise ReportUnavailable("no_rooms", "no engine here")
    until = time.monotonic() + MOST_S
    for batch in batches(pending, BATCH_BYTES, BATCH_FILES):
        assert rooms is not None
        left = until - time.monotonic()
        found: Mapping[int, Answer] = await _in_room(rooms, batch, left) if left > 0 else {}
        for item in batch:
            reports[item.place] = _finished(reports[item.place], found.get(item.place))
    return IntegrityReport(files=tuple(reports), not_listed=len(files) - len(listed))


def _sort(files: Sequence[ArtifactEntry], content_of: Callable[[str], Path]) -> tuple[list[FileReport], list[Item]]:
    """Return the reports as far as they are, and what a room must look at, by its place among them."""
    reports: list[FileReport] = []
    pending: list[Item] = []
    for place, entry in enumerate(files):
        report, content = begun(entry), content_of(entry.sha256 or "")
        content.stat()  # a file that is gone is our loss, and no finding about the deliverable
        finished = judged_here(report, content)
        if finished is None:
            pending.append(Item(place, report.claims or "", report.size_bytes, content))
        reports.append(finished or report)
    return reports, pending


async def _in_room(rooms: Rooms, batch: Sequence[Item], left_s: float) -> dict[int, Answer]:
    """Return the answers that came. Raises ReportUnavailable if there was no room; a room that dies costs its answers."""
    small = fits_in_memory(batch)
    opened = False
    try:
        async with rooms.open(IMAGE, _SMALL if small else _LIMITS, in_memory=small) as room:
            await room.write_files(_sources(batch))
            opened = True
            return await _ask(room, batch, left_s)
    except (LauncherLost, ToolFailed) as error:
        if opened:  # the files took the room with them: each of them gets its line
            log.warning("integrity_room_died", error=str(error))
            return {}
        raise ReportUnavailable("room_failed", str(error)) from error
    except (SandboxError, OSError) as error:
        raise ReportUnavailable("room_failed", str(error)) from error


async def _ask(room: Sandbox, batch: Sequence[Item], left_s: float) -> dict[int, Answer]:
    question = ",".join(f'[{item.place},"{item.ext}"]' for item in batch)
    timeout_s = min(left_s, BATCH_S + FILE_S * len(batch))
    done = await room.exec(_ARGV, stdin=f"[{question}]".encode(), timeout_s=timeout_s, limit_bytes=ANSWER_BYTES)
    if done.code != 0:
        log.warning(
            "integrity_checker", code=done.code, signal=done.signal, late=done.timed_out, stderr=done.stderr[-500:]
        )
    return answers(done.stdout, frozenset(item.place for item in batch))


def _sources(batch: Sequence[Item]) -> list[FileSource]:
    files = [FileSource(f"in/{item.place}/file", file=item.content) for item in batch]
    return [FileSource("check.pyz", data=checker_bundle()), *files]


def _finished(report: FileReport, answer: Answer | None) -> FileReport:
    if answer is None:
        return with_problem(report, ProblemType.CHECKER_FAILED, "no answer about this file", opens=None)
    return report.model_copy(
        update={
            "sniffed": answer.sniffed,
            "opens": answer.opens,
            "problems": tuple(answer.problems),
            "facts": answer.facts,
        }
    )

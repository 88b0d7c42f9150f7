"""Makes the integrity report of a sealed deliverable: batches of files into rooms, answers taken as untrusted."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.errors import Fault
from service.domain.integrity import MAX_FILES, FileReport, IntegrityReport, ProblemType
from service.domain.limits import GIB, MIB, Limits
from service.evidence.integrity.answers import Answer, answers
from service.evidence.integrity.bundle import checker_bundle
from service.evidence.integrity.quick import begun, judged_here, with_problem
from service.sandboxes.contract import FileSource, LauncherLost, Sandbox, SandboxError, ToolFailed
from service.sandboxes.rooms import Rooms

IMAGE = "documents"
IN_MEMORY_BYTES = 64 * MIB
"""Batches up to here need no disk."""
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


@dataclass(frozen=True, slots=True)
class _Pending:
    place: int
    """In the report's list."""
    report: FileReport
    content: Path


async def make_report(
    entries: Sequence[ArtifactEntry], content_of: Callable[[str], Path], rooms: Rooms | None
) -> IntegrityReport:
    """Look at every regular file. ``content_of`` gives the file of a digest.

    Raises ReportUnavailable. A file that breaks its reader, or whose line is missing, is a line of the report.
    """
    files = [e for e in entries if e.kind is EntryKind.FILE and e.sha256 is not None]
    listed = files[:MAX_FILES]
    try:
        done, pending = await asyncio.to_thread(_sort, listed, content_of)
    except OSError as error:
        raise ReportUnavailable("deliverable_missing", str(error)) from error
    if pending and rooms is None:
        raise ReportUnavailable("no_rooms", "no engine here")
    until = time.monotonic() + MOST_S
    for batch in _batches(pending):
        assert rooms is not None
        left = until - time.monotonic()
        found = await _in_room(rooms, batch, left) if left > 0 else {}
        for item in batch:
            done[item.place] = _finished(item.report, found.get(item.place))
    ordered = tuple(done[place] for place in range(len(listed)))
    return IntegrityReport(files=ordered, not_listed=len(files) - len(listed))


def _sort(
    files: Sequence[ArtifactEntry], content_of: Callable[[str], Path]
) -> tuple[dict[int, FileReport], list[_Pending]]:
    done: dict[int, FileReport] = {}
    pending: list[_Pending] = []
    for place, entry in enumerate(files):
        report, content = begun(entry), content_of(entry.sha256 or "")
        content.stat()  # a file that is gone is our loss, and no finding about the deliverable
        finished = judged_here(report, content)
        if finished is None:
            pending.append(_Pending(place, report, content))
        else:
            done[place] = finished
    return done, pending


def _batches(pending: Iterable[_Pending]) -> Iterator[list[_Pending]]:
    batch: list[_Pending] = []
    size = 0
    for item in pending:
        if batch and (size + item.report.size_bytes > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.report.size_bytes
    if batch:
        yield batch


async def _in_room(rooms: Rooms, batch: Sequence[_Pending], left_s: float) -> dict[int, Answer]:
    """Return the answers that came. Raises ReportUnavailable if there was no room; a room that dies costs its answers."""
    small = sum(item.report.size_bytes for item in batch) <= IN_MEMORY_BYTES
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


async def _ask(room: Sandbox, batch: Sequence[_Pending], left_s: float) -> dict[int, Answer]:
    question = ",".join(f'[{item.place},"{item.report.claims or ""}"]' for item in batch)
    timeout_s = min(left_s, BATCH_S + FILE_S * len(batch))
    done = await room.exec(_ARGV, stdin=f"[{question}]".encode(), timeout_s=timeout_s, limit_bytes=ANSWER_BYTES)
    if done.code != 0:
        log.warning(
            "integrity_checker", code=done.code, signal=done.signal, late=done.timed_out, stderr=done.stderr[-500:]
        )
    return answers(done.stdout, frozenset(item.place for item in batch))


def _sources(batch: Sequence[_Pending]) -> list[FileSource]:
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

"""The parts of an image as they came: staged files, and how they are fed to a reader with a word on the progress."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from service.archives.contract import Reader
from service.lifecycle.operations.contract import Job
from service.store.staging import StagedFile

FEED = 8 << 20
"""Bytes that are read and fed in one thread call."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """An image that has come: nothing of it was looked at yet but where its parts are."""

    config: StagedFile
    layers: list[StagedFile]
    """As they came: perhaps compressed."""


@dataclass(slots=True)
class Progress:
    """What an import has read, of bytes that are known from the start or not."""

    job: Job
    total: int | None = None
    done: int = 0

    async def read(self, count: int) -> None:
        """Raises JobCancelled, Unavailable."""
        self.done += count
        total = self.total
        await self.job.report(self.done if total is None else min(self.done, max(total - 1, 0)), total)


async def feed_file(path: Path, reader: Reader, progress: Progress) -> None:
    """Feed a whole file. Raises what the reader raises, JobCancelled, Unavailable."""
    at = 0
    while count := await asyncio.to_thread(_feed, path, at, reader):
        at += count
        await progress.read(count)
    await asyncio.to_thread(reader.finish)


def _feed(path: Path, at: int, reader: Reader) -> int:
    with path.open("rb") as file:
        file.seek(at)
        data = file.read(FEED)
    reader.feed(data)
    return len(data)

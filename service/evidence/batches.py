"""Files on their way into rooms: batches that a room holds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.domain.limits import MIB

IN_MEMORY_BYTES = 64 * MIB
"""Batches up to here need no disk."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file. No name of the deliverable goes into a room: its number does."""

    place: int
    ext: str
    """Of its name, in lower case; may be empty."""
    size_bytes: int
    content: Path


def batches(items: Iterable[Item], most_bytes: int, most_files: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (size + item.size_bytes > most_bytes or len(batch) >= most_files):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size_bytes
    if batch:
        yield batch


def fits_in_memory(batch: Iterable[Item]) -> bool:
    return sum(item.size_bytes for item in batch) <= IN_MEMORY_BYTES

"""Contamination: an agent that met its own answer key (NEEDS A3). What is looked for, and how it is found in a text.

Marks are exact: the benchmark's canary strings, and stretches of the task's hidden files that its visible files and its
instruction do not contain. Both sides are compared in one form (:func:`plain`), so that line breaks, letter case and the
escapes of JSON hide nothing. A paraphrase is not found; what is found is no accident.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

VERSION = 1
"""Raised whenever the same run could give another finding."""
SHINGLE = 64
"""Characters of a stretch."""
MOST_SHINGLES = 256
"""Of one hidden file, evenly spread over it."""
MOST_MARKS = 20_000
"""Of one task."""
LEAST_WORDS = 5
"""A stretch with fewer is a ruler, a row of zeros or a table's border: it says nothing."""
LEAST_CANARY = 12
"""Characters; a shorter canary is found in everything."""
MOST_HITS = 50
"""Kept of one run."""
_SPACE = re.compile(r"\s+")
_ESCAPE = re.compile(r"\\(?:[nrt]|u00(?:0[9aAdD]|20))")
_WORD = re.compile(r"\w{2,}")


class MarkKind(StrEnum):
    CANARY = "canary"
    SHINGLE = "shingle"
    FILE = "file"
    """A whole hidden file, byte for byte."""


@dataclass(frozen=True, slots=True)
class Mark:
    kind: MarkKind
    text: str
    """In plain form; of a file its sha256."""
    source: str
    """Hidden file that it is of; empty for a canary."""


@dataclass(frozen=True, slots=True)
class Hit:
    kind: MarkKind
    source: str
    where: str
    """What the agent met it in: ``model request 3``, ``event 17``, ``deliverable report.md``."""
    excerpt: str
    """The mark itself: hidden text."""


def plain(text: str) -> str:
    """Return ``text`` in lower case, with escapes of JSON undone and every run of white space as one space."""
    if "\\" in text:
        text = _ESCAPE.sub(" ", text).replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")
    return _SPACE.sub(" ", text).strip().lower()


def marks_of(canaries: Iterable[str], hidden: Iterable[tuple[str, str]], seen: Sequence[str]) -> list[Mark]:
    """Return what a task is looked for by.

    ``hidden``: (path, text) of the hidden files; ``seen``: the texts that every agent is given, in which no stretch counts.
    """
    known = [plain(text) for text in seen]
    found = [Mark(MarkKind.CANARY, text, "") for text in map(plain, canaries) if len(text) >= LEAST_CANARY]
    taken: set[str] = set()
    for path, text in hidden:
        for stretch in _spread(_shingles(plain(text), known)):
            if stretch not in taken:
                taken.add(stretch)
                found.append(Mark(MarkKind.SHINGLE, stretch, path))
    return found[:MOST_MARKS]


def _shingles(text: str, known: Sequence[str]) -> list[str]:
    found: list[str] = []
    for start in range(0, len(text) - SHINGLE + 1, SHINGLE):
        stretch = text[start : start + SHINGLE]
        telling = len(set(_WORD.findall(stretch))) >= LEAST_WORDS
        if telling and not any(stretch in other for other in known):
            found.append(stretch)
    return found


def _spread(stretches: list[str]) -> list[str]:
    if len(stretches) <= MOST_SHINGLES:
        return stretches
    return [stretches[i * len(stretches) // MOST_SHINGLES] for i in range(MOST_SHINGLES)]


def hits_in(marks: Sequence[Mark], where: str, text: str) -> list[Hit]:
    """Return the marks that a text contains, at most :data:`MOST_HITS`."""
    body = plain(text)
    if not body:
        return []
    found: list[Hit] = []
    for mark in marks:
        if mark.kind is not MarkKind.FILE and mark.text in body:
            found.append(Hit(mark.kind, mark.source, where, mark.text))
            if len(found) == MOST_HITS:
                break
    return found


def texts_of_json(body: str) -> str:
    """Return the strings of a JSON text, or of the data lines of an event stream, in their order.

    Pieces of a streamed answer are put together without a gap; a text that is no JSON is returned as it is.
    """
    parsed = _parsed(body)
    if parsed is not _NOTHING:
        return "\n".join(_strings(parsed))
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    events = [value for value in map(_parsed, lines) if value is not _NOTHING]
    if not events:
        return body
    joined: dict[tuple[str, ...], list[str]] = {}
    for event in events:
        for path, text in _leaves(event, ()):
            joined.setdefault(path, []).append(text)
    return "\n".join("".join(pieces) for pieces in joined.values())


_NOTHING = object()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _strings(value: Any) -> Iterator[str]:
    for _, text in _leaves(value, ()):
        yield text


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the strings below ``value``; a list's places are no part of the path, so that streamed pieces meet."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, child in cast("Mapping[str, Any]", value).items():
            yield from _leaves(child, (*path, str(name)))
    elif isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from _leaves(child, path)

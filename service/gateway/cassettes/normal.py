"""Requests without what differs from one run to the next although nothing changed: what cassettes are matched by.

Two lists, both here and nowhere else: fields that are left out per dialect, and kinds of text that are put as a word
wherever they stand (a CLI's prompts name the day, its tools' results name times and process ids). Pictures: ``pictures``, ``screens``.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from service.domain.models import Dialect
from service.gateway.cassettes.pictures import shows_a_screen, without_pictures
from service.gateway.cassettes.screens import without_chance

Pattern = tuple[str, ...]
"""A path into a body; ``*`` stands for any key or index."""

FIELDS: Mapping[Dialect, Sequence[Pattern]] = {
    Dialect.ANTHROPIC: (("metadata",), ("diagnostics",), ("fallback_credit_token",)),
    Dialect.OPENAI: (
        ("prompt_cache_key",), ("metadata",), ("client_metadata",), ("user",), ("safety_identifier",),
        ("prompt_cache_options",),
        # Clients make some of these up; what belongs together is told by call_id.
        ("input", "*", "id"),
    ),
    Dialect.GEMINI: (
        ("labels",),
        # The client makes these up: the provider gives its calls no ids.
        ("contents", "*", "parts", "*", "functionCall", "id"),
        ("contents", "*", "parts", "*", "functionResponse", "id"),
    ),
    Dialect.OPAQUE: (),
}  # fmt: skip

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
TEXTS: Mapping[str, str] = {
    "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "time": r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?",
    "day": r"\b(?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{4}|(?:[A-Z][a-z]{2,8}day, )?[A-Z][a-z]{2,8} \d{1,2}, \d{4})\b",
    # As `ls -l`, `date` and C's asctime write it.
    "stamp": rf"\b(?:[A-Z][a-z]{{2}} )?{_MONTHS} +\d{{1,2}} +(?:\d\d:\d\d(?::\d\d)?(?: [A-Z]{{3,4}})?(?: \d{{4}})?|\d{{4}}\b)",
    "clock": r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b",
    "duration": r"\b\d+(?:\.\d+)? ?(?:ms|milliseconds|s|sec|secs|seconds)\b",
    "epoch": r"\b1[6-9]\d{8}(?:\d{3})?(?:\.\d+)?\b",
    "process": r"(?i)\b(?:pid|process id|session id|session_id)(?:[ =:]+|\W{1,4})\d+\b",
    "address": r"\b0x[0-9a-f]{6,16}\b",
    "ours": r"\b(?:run|att|mrq|art|evt)_[0-9A-Za-z]{10,40}\b",
    "version hash": r"\bcch=[0-9a-f]+",
    "chunk": r"\bChunk ID: [0-9a-f]+",
    # Named after a process.
    "socket": r"\b\d+\.sock\b",
}  # fmt: skip
_KINDS = list(TEXTS)
_TEXT = re.compile("|".join(f"({pattern.removeprefix('(?i)')})" for pattern in TEXTS.values()))
_PROCESS = re.compile(TEXTS["process"])
_REMEMBERED = 16 << 20
"""Characters."""
_MAYBE = re.compile(r"\d|cch=|Chunk ID")


class Normaliser:
    """Remembers texts that it has seen: a conversation repeats itself with every turn.

    ``screen``: the run has one, by whatever tools its model is shown it.
    """

    def __init__(self, *, screen: bool = False) -> None:
        self._screen = screen
        self._known: dict[str, str] = {}
        self._size = 0

    def body(self, dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a body without volatile fields, its volatile texts as words. ``body`` is not changed."""
        screen = self._screen or shows_a_screen(body)
        put: Any = without_pictures(body, screen=screen)
        if screen:
            put = without_chance(put)
        return cast("dict[str, Any]", self._worded(_without(put, FIELDS[dialect])))

    def _worded(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._worded(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self._worded(one) for key, one in cast("dict[str, Any]", value).items()}
        return value

    def _text(self, text: str) -> str:
        found = self._known.get(text)
        if found is None:
            if self._size > _REMEMBERED:
                self._known.clear()
                self._size = 0
            found = self._known[text] = normal_text(text)
            self._size += len(text)
        return found


def normal_text(text: str) -> str:
    """Return the text with every volatile piece put as a word."""
    if not _MAYBE.search(text):
        return text
    return _TEXT.sub(_word, _PROCESS.sub("<process>", text))


def body_hash(normal: Mapping[str, Any]) -> str:
    written = json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()


def key_of(method: str, path: str, model: str, normal: Mapping[str, Any]) -> str:
    """Return what a request is found by in a cassette."""
    parts = json.dumps([method, path, model, body_hash(normal)])
    return hashlib.sha256(parts.encode()).hexdigest()


def _word(found: re.Match[str]) -> str:
    return f"<{_KINDS[(found.lastindex or 1) - 1]}>"


def _without(value: Any, patterns: Sequence[Pattern]) -> Any:
    if not patterns:
        return value
    if isinstance(value, list):
        inner = [pattern[1:] for pattern in patterns if pattern[0] == "*" and len(pattern) > 1]
        return [_without(one, inner) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    gone = {pattern[0] for pattern in patterns if len(pattern) == 1}
    return {
        key: _without(one, [p[1:] for p in patterns if len(p) > 1 and p[0] in (key, "*")])
        for key, one in cast("dict[str, Any]", value).items()
        if key not in gone
    }

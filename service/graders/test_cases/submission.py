"""What the candidate delivered: a program, as a file or inside an answer in words, and answers to questions."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.graders import strict_json
from service.graders.contract import GradingInput
from service.graders.test_cases.languages import TOOLS
from service.graders.test_cases.results import Cause, Result
from service.graders.test_cases.settings import TestCasesSettings

MAX_PROGRAM_BYTES = 1 << 20
IN_WORDS = (".md", ".txt")
_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`~{}]*)")


class Block(NamedTuple):
    tag: str
    """First word after the fence, lower case."""
    text: str


class Unusable(Exception):
    """Every item of this deliverable fails in the same way."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.result = Result.failed(cause, reason)


def read_program(given: GradingInput, settings: TestCasesSettings) -> tuple[bytes, dict[str, Any]]:
    """Return the program and where it came from. Raises Unusable, GraderFault."""
    entry = _first(given, settings.submission)
    with given.open_deliverable(entry) as stream:
        data = stream.read(MAX_PROGRAM_BYTES + 1)
    if len(data) > MAX_PROGRAM_BYTES:
        raise Unusable(Cause.NO_CODE, f"{entry.path}: larger than {MAX_PROGRAM_BYTES} bytes")
    taken = "file"
    if entry.path.endswith(IN_WORDS):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Unusable(Cause.NO_CODE, f"{entry.path}: not UTF-8 text") from None
        program, taken = extract(text, TOOLS[settings.language].tags)
        data = program.encode()
    if not data.strip():
        raise Unusable(Cause.NO_CODE, f"{entry.path}: no program of the language in it")
    return data, {"file": entry.path, "taken_from": taken, "bytes": len(data)}


def read_answers(given: GradingInput, path: str) -> dict[str, Any]:
    """Return the answers by item id. Raises Unusable, GraderFault."""
    entry = _first(given, [path])
    try:
        with given.open_deliverable(entry) as stream:
            return strict_json.read_object(stream)
    except strict_json.NotUsable as error:
        raise Unusable(Cause.UNPARSABLE_ANSWER, f"{path}: {error}") from error


def extract(text: str, tags: frozenset[str]) -> tuple[str, str]:
    """Return (program, where it was): the longest fenced block of the language, else of none, else the whole text.

    A text whose blocks are all of other languages holds no program.
    """
    found = list(blocks(text))
    for wanted, where in ((tags, "fenced_block"), ({""}, "plain_block")):
        fitting = [block.text for block in found if block.tag in wanted]
        if fitting:
            return max(fitting, key=len), where
    return ("", "nothing") if found else (text, "whole_text")


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a Markdown text; one that is not closed goes to the end."""
    fence, tag, lines = "", "", list[str]()
    for line in text.splitlines(keepends=True):
        if not fence:
            opening = _OPENING.match(line)
            if opening:
                fence, tag, lines = opening[1], opening[2].lower(), []
        elif _closes(line, fence):
            yield Block(tag, "".join(lines))
            fence = ""
        else:
            lines.append(line)
    if fence:
        yield Block(tag, "".join(lines))


def _closes(line: str, fence: str) -> bool:
    rest = line.strip()
    return len(line) - len(line.lstrip(" ")) <= 3 and len(rest) >= len(fence) and not rest.strip(fence[0])


def _first(given: GradingInput, paths: list[str]) -> ArtifactEntry:
    known = {entry.path: entry for entry in given.entries}
    for path in paths:
        entry = known.get(path)
        if entry is not None and entry.kind is EntryKind.FILE:
            return entry
        if entry is not None:
            raise Unusable(Cause.MISSING_DELIVERABLE, f"{path}: not a sealed regular file ({entry.kind.value})")
    raise Unusable(Cause.MISSING_DELIVERABLE, f"not delivered: {', '.join(paths)}")

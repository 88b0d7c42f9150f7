"""csv and tsv: the rows as they stand; of long tables the first and the last ones."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.readers.texts import decoded
from service.evidence.extraction.inside.sharing import HEAD
from service.evidence.integrity.checker import texts
from service.evidence.integrity.checker.findings import Trouble

COLUMNS_SAID = 100_000


def read_csv(path: Path, out: Output) -> None:
    text = decoded(path, out, "table")
    if text is None:
        return
    lines = text.splitlines(keepends=True)
    _give(lines, out)
    try:
        seen = texts.read_csv(path, out.kind)
    except Trouble as trouble:
        out.note(f"not a sound table: {trouble.detail}")
        return
    for name in ("rows", "columns"):
        out.fact(name, seen.facts[name])
    for _, detail in seen.problems:
        out.note(detail)


def _give(lines: Sequence[str], out: Output) -> None:
    most = out.caps.file_chars
    if sum(map(len, lines)) <= most:
        out.part("table", "", "".join(lines))
        return
    head = _fitting(lines, round(most * HEAD))
    tail = _fitting(reversed(lines[head:]), most - round(most * HEAD))
    out.part("table", f"lines 1 to {head}", "".join(lines[:head]))
    left = lines[head : len(lines) - tail]
    if tail:
        out.part("table", f"lines {len(lines) - tail + 1} to {len(lines)}", "".join(lines[len(lines) - tail :]))
    out.omit(rows=len(left), chars=sum(map(len, left)))


def _fitting(lines: Iterable[str], most: int) -> int:
    """Return how many of the lines fit; one at least, which may be cut."""
    many = 0
    for line in lines:
        most -= len(line)
        if most < 0 and many:
            return many
        many += 1
    return many

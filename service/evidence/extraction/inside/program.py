"""Reads a list of files from stdin, has each read in a process of its own, writes one JSON line per file.

stdin: ``{"caps": {…}, "files": [[number, extension], …]}``; file *n* lies at ``<folder>/<n>/file``. No name of the
deliverable comes in here. A line is what the reader's process said, with each picture by its digest (the bytes lie in
``<folder>/pictures/<sha256>``) and the file's number.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from service.evidence.extraction.inside.child import CPU_S, MEMORY, extract
from service.evidence.extraction.inside.contract import Caps
from service.evidence.extraction.inside.kinds import OFFICE, kind_of
from service.evidence.extraction.inside.office import Office
from service.evidence.extraction.inside.registry import reader_of
from service.evidence.integrity.checker.findings import MIB
from service.evidence.integrity.checker.processes import Bounds, End, guard, run_each, too_dear

MOST_LINE = 6 * MIB
GRACE_S = 15.0
"""Beyond a reader's own time, until it is killed."""
PICTURES = "pictures"


def main(folder: str) -> int:
    guard()
    asked: dict[str, Any] = json.load(sys.stdin)
    caps = Caps(**asked["caps"])
    base = Path(folder)
    (base / PICTURES).mkdir()
    wanted: dict[int, str] = {int(n): str(ext) for n, ext in asked["files"]}
    kinds = {n: kind_of(base / str(n) / "file", ext) for n, ext in wanted.items()}
    for kind, _ in kinds.values():
        reader_of(kind)  # loaded once, before the files are opened
    office = _office(base) if any(kind in OFFICE for kind, _ in kinds.values()) else None

    def work(number: int) -> bytes:
        kind, note = kinds[number]
        return extract(base / str(number) / "file", kind, wanted[number], note, caps, office)

    def say(end: End) -> None:
        found = _understood(end, base / PICTURES)
        # These come last: a reader that was taken over may have put others in.
        line = {**found, "kind": kinds[end.number][0], "n": end.number}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()

    try:
        most = MOST_LINE + caps.image_bytes
        run_each(wanted, work, say, Bounds(caps.file_s + GRACE_S, CPU_S, MEMORY, 256 * MIB, most))
    finally:
        if office is not None:
            office.close()
    return 0


def _office(base: Path) -> Office:
    """Start the office program beside the readers that need none; its processes are killed with the room at the latest."""
    office = Office(base / "office")
    office.start()
    return office


def _understood(end: End, pictures: Path) -> dict[str, Any]:
    line, _, rest = end.said.partition(b"\n")
    try:
        found: object = json.loads(line[:MOST_LINE])
        if isinstance(found, dict):
            fields = cast("dict[str, Any]", found)
            return {**fields, "images": _kept(fields["images"], rest, pictures)}
    except (ValueError, TypeError, KeyError, RecursionError):
        pass  # it died before it spoke, or was taken over
    if too_dear(end):
        return {"state": "failed", "error": "timeout", "detail": "its reader did not end in time"}
    return {"state": "failed", "error": "extractor_failed", "detail": f"its reader crashed (signal {end.signal})"}


def _kept(listed: list[list[Any]], rest: bytes, pictures: Path) -> list[list[Any]]:
    """Write the pictures; return their rows, each with the digest that it has here."""
    rows: list[list[Any]] = []
    at = 0
    for *row, size in listed:
        data = rest[at : at + int(size)]
        at += int(size)
        digest = sha256(data).hexdigest()
        try:
            (pictures / digest).write_bytes(data)
        except OSError:
            continue  # no space left: the host counts what is missing
        rows.append([*row, len(data), digest])
    return rows

"""Reads a list of files from stdin, opens each in a process of its own, writes one JSON line per file.

stdin: ``[[number, extension], …]``; file *n* lies at ``<folder>/<n>/file``. No name of the deliverable comes in here: a
line is ``{"n": number, "sniffed", "opens", "problems", "facts"}``. A reader that does not end in time is killed.
"""

import json
import sys
from pathlib import Path

from service.evidence.integrity.checker.child import MEMORY, Result, examine, sniffed
from service.evidence.integrity.checker.findings import MIB
from service.evidence.integrity.checker.processes import Bounds, End, guard, run_each, too_dear
from service.evidence.integrity.checker.readers import reader_of
from service.evidence.integrity.checker.sniff import judged

WALL_S = 30.0
CPU_S = 20
_MOST = 65536


def main(folder: str) -> int:
    guard()
    wanted: dict[int, str] = {int(n): str(ext) for n, ext in json.load(sys.stdin)}
    base = Path(folder)
    for number, ext in wanted.items():
        reader_of(judged(ext, sniffed(base / str(number) / "file"))[0])

    def work(number: int) -> bytes:
        return json.dumps(examine(base / str(number) / "file", wanted[number])).encode()[:_MOST]

    run_each(wanted, work, _say, Bounds(WALL_S, CPU_S, MEMORY, 16 * MIB, _MOST))
    return 0


def _say(end: End) -> None:
    # The number comes last: a reader that was taken over may have put one in as well.
    print(json.dumps({**_understood(end), "n": end.number}), flush=True)  # noqa: T201


def _understood(end: End) -> Result:
    try:
        found = json.loads(end.said)
        if isinstance(found, dict):
            return found  # pyright: ignore[reportUnknownVariableType] - the host checks every field
    except (ValueError, RecursionError):
        pass  # it died before it spoke, or was taken over
    if too_dear(end):
        problem = ["timeout", "its reader did not end in time"]
    else:
        problem = ["cannot_open", f"its reader crashed (signal {end.signal})"]
    return {"sniffed": None, "opens": False, "problems": [problem], "facts": {}}

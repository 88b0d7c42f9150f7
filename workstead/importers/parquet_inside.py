"""Turns a parquet file into lines of JSON, within bounds: a program of its own, see :mod:`workstead.importers.parquet`.

``parquet_inside.py FILE TARGET ROWS MEMORY_BYTES TARGET_BYTES``. The standard library and polars, nothing of ours.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows has none, and reads without bounds
    resource = None


def bound(memory: int, written: int) -> None:
    if resource is None:
        return
    for name, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, written), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):
            resource.setrlimit(name, (limit, limit))


def convert(path: Path, target: Path, rows: int) -> None:
    import polars  # noqa: PLC0415  # within the bounds

    # Bytes, not a path: polars takes a path for a pattern, or an address.
    frame = polars.read_parquet(path.read_bytes(), n_rows=rows)
    with target.open("w", encoding="utf-8") as file:
        for row in frame.iter_rows(named=True, buffer_size=64):
            file.write(json.dumps(row, default=plain) + "\n")


def plain(value: Any) -> "str | None":
    return None if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    bound(int(sys.argv[4]) + source.stat().st_size, int(sys.argv[5]))
    convert(source, Path(sys.argv[2]), int(sys.argv[3]))

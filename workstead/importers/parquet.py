"""Rows of a parquet file, read by a child process that has bounds: a file may unfold to any size, or break its reader."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from workstead.importers.tables import MAX_ROWS, Row, read_rows
from workstead.importers.untrusted import MAX_JSON_BYTES
from workstead.task_dir import InvalidInput

INSIDE = Path(__file__).with_name("parquet_inside.py")
MAX_FILE_BYTES = 1 << 30
MEMORY_BYTES = 4 << 30
"""Beyond what the file itself takes."""
TIMEOUT_S = 300.0
MAX_SAID = 400


def parquet_rows(path: Path) -> list[Row]:
    """Return the rows of a parquet file. Raises InvalidInput (none, too large, polars is missing), OSError."""
    if importlib.util.find_spec("polars") is None:
        raise InvalidInput(path, ["reading parquet needs polars: pip install 'workstead[parquet]'"])
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidInput(path, [f"is not a file of at most {MAX_FILE_BYTES} bytes"])
    with tempfile.TemporaryDirectory(prefix="workstead-parquet-") as made:
        target = Path(made) / "rows.jsonl"
        trouble = _convert(path, target)
        if trouble is not None:
            raise InvalidInput(path, [trouble])
        return list(read_rows(target))


def _convert(path: Path, target: Path) -> str | None:
    """Return why the file cannot be read; null: ``target`` has its rows."""
    bounds = (MAX_ROWS + 1, MEMORY_BYTES, MAX_JSON_BYTES)
    argv = [sys.executable, "-I", str(INSIDE), str(path.resolve()), str(target), *map(str, bounds)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"was not read within {TIMEOUT_S:g} s"
    if done.returncode == 0:
        return None
    lines = done.stderr[-8_192:].decode(errors="replace").strip().splitlines()
    return f"is not parquet that can be read: {lines[-1][:MAX_SAID] if lines else f'exit {done.returncode}'}"

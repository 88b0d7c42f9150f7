"""SQLite databases: schema, and the first rows of each table. Only reading is allowed, and it ends."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output

ROWS = 500
"""Of each table."""
MAX_TABLES = 300
CELL_CHARS = 2000
QUERY_S = 10.0
_STEPS = 10_000
_LONGEST = 16 << 20
"""Bytes of a value or a statement."""
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION})


def read_sqlite(path: Path, out: Output) -> None:
    """Raises Failed ``cannot_open``."""
    try:
        # immutable: no journal beside it is looked for, nothing is written.
        with closing(sqlite3.connect(f"file:{path.resolve()}?mode=ro&immutable=1", uri=True)) as base:
            _harmless(base)
            _tell(base, out)
    except sqlite3.DatabaseError as error:
        raise Failed("timeout" if "interrupted" in str(error) else "cannot_open", str(error)) from error


def _harmless(base: sqlite3.Connection) -> None:
    base.execute("pragma trusted_schema=off")
    base.execute("pragma cell_size_check=on")
    base.text_factory = _text
    for limit, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
    ):
        base.setlimit(limit, most)
    base.set_authorizer(_allowed)


def _allowed(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tell(base: sqlite3.Connection, out: Output) -> None:
    listed = base.execute("select type, name, sql from sqlite_master order by rowid limit 10000").fetchall()
    out.part("schema", "", "\n".join(f"{sql};" for _, _, sql in listed if sql))
    tables = [name for kind, name, _ in listed if kind == "table" and not name.startswith("sqlite_")]
    out.fact("tables", len(tables))
    for name in tables[:MAX_TABLES]:
        try:
            _table(base, name, out)
        except sqlite3.DatabaseError as error:
            out.note(f"table {name[:100]} could not be read: {error}"[:500])
    out.omit(parts=max(0, len(tables) - MAX_TABLES))


def _table(base: sqlite3.Connection, name: str, out: Output) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    until = time.monotonic() + min(QUERY_S, max(0.5, out.left_s - 5))
    base.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    found = base.execute(f"select * from {quoted} limit {ROWS}")  # noqa: S608 - quoted as SQLite wants it
    heads = [column[0] for column in found.description]
    lines = ["\t".join(heads), *("\t".join(map(_shown, row)) for row in found)]
    out.part("table", f"{name}: first rows" if len(lines) > ROWS else name, "\n".join(lines))
    if len(lines) > ROWS:
        total = base.execute(f"select count(*) from {quoted}").fetchone()[0]  # noqa: S608 - quoted as SQLite wants it
        out.omit(rows=max(0, int(total) - ROWS))


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return str(value)[:CELL_CHARS].replace("\t", " ").replace("\r", "").replace("\n", "⏎")

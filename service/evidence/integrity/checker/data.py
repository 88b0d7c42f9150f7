"""Databases, tables, fonts and 3D models: whole by their own account, cheaply."""

import json
import sqlite3
import struct
from pathlib import Path
from typing import Any, cast

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble
from service.evidence.integrity.checker.texts import text_of

_STEPS = 50_000_000
"""Steps of SQLite's machine for one file."""


def read_sqlite(path: Path, _: str) -> Seen:
    head = path.read_bytes()[:100]
    page = struct.unpack_from(">H", head, 16)[0] if len(head) == 100 else 0
    pages = struct.unpack_from(">I", head, 28)[0] if len(head) == 100 else 0
    if pages * (65536 if page == 1 else page) > path.stat().st_size:
        raise Trouble("truncated", "fewer pages than the header says")
    base = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        base.execute("pragma trusted_schema=off")
        base.set_progress_handler(lambda: 1, _STEPS)
        tables = base.execute("select count(*) from sqlite_master where type = 'table'").fetchone()[0]
        answer = str(base.execute("pragma quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        raise Trouble("timeout" if "interrupted" in str(error) else "cannot_open", str(error)) from error
    finally:
        base.close()
    return Seen({"entries": tables}, [] if answer == "ok" else [("malformed", answer)])


def read_parquet(path: Path, _: str) -> Seen:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        tail = file.read()
    if len(tail) < 8 or tail[4:] != b"PAR1":
        raise Trouble("truncated", "the end mark is missing")
    if struct.unpack("<I", tail[:4])[0] + 12 > size:
        raise Trouble("cannot_open", "its table of contents is longer than the file")
    return Seen()


def read_rtf(path: Path, _: str) -> Seen:
    if not path.read_bytes()[: 64 * MIB].rstrip(b"\x00\r\n\t ").endswith(b"}"):
        raise Trouble("truncated", "the outermost group does not end")
    return Seen()


def read_font(path: Path, kind: str) -> Seen:
    data = path.read_bytes()[: 64 * MIB]
    if kind in ("woff", "woff2"):
        if len(data) < 14 or struct.unpack_from(">I", data, 8)[0] > len(data):
            raise Trouble("truncated", "shorter than its header says")
        return Seen({"entries": struct.unpack_from(">H", data, 12)[0]})
    tables = struct.unpack_from(">H", data, 4)[0] if len(data) >= 12 else 0
    if not tables or len(data) < 12 + 16 * tables:
        raise Trouble("cannot_open", "no table of contents")
    for at in range(12, 12 + 16 * tables, 16):
        offset, length = struct.unpack_from(">II", data, at + 8)
        if offset + length > len(data):
            raise Trouble("truncated", "a table lies beyond the end")
    return Seen({"entries": tables})


def read_glb(path: Path, _: str) -> Seen:
    data = path.read_bytes()
    if len(data) < 20:
        raise Trouble("truncated", "shorter than its header")
    length, first = struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<I", data, 12)[0]
    if length > len(data):
        raise Trouble("truncated", "shorter than its header says")
    return _model(data[20 : 20 + first].decode("utf-8", "replace"))


def read_gltf(path: Path, _: str) -> Seen:
    return _model(text_of(path)[0])


def read_obj(path: Path, _: str) -> Seen:
    lines = text_of(path)[0].splitlines()
    if not any(line.startswith("v ") for line in lines):
        raise Trouble("cannot_open", "no vertex in it")
    return Seen({"entries": sum(line.startswith("f ") for line in lines)})


def read_stl(path: Path, _: str) -> Seen:
    data = path.read_bytes()
    if data[:5] == b"solid" and b"facet" in data[:4096]:
        if b"endsolid" not in data[-4096:]:
            raise Trouble("truncated", "no endsolid")
        return Seen({"entries": data.count(b"endfacet")})
    triangles = struct.unpack_from("<I", data, 80)[0] if len(data) >= 84 else 0
    if len(data) < 84 + 50 * triangles:
        raise Trouble("truncated", "fewer triangles than the header says")
    if len(data) < 84:
        raise Trouble("cannot_open", "no header")
    return Seen({"entries": triangles})


def _model(text: str) -> Seen:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Trouble("cannot_open", "its description is not JSON") from error
    if not isinstance(found, dict) or "asset" not in found:
        raise Trouble("cannot_open", "no asset in it")
    meshes: object = cast("dict[str, Any]", found).get("meshes", [])
    return Seen({"entries": len(cast("list[object]", meshes))} if isinstance(meshes, list) else {})

"""Requests as fields, and what the launcher's answers mean."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.sandboxes.contract import Command, ExecResult, ListedFile, Listing, ToolFailed, Usage
from service.sandboxes.docker.framing import MAX_MESSAGE, Violation, integer, natural, pack, unpack

MAX_STDIN = 4 << 20
_KINDS = {b"f": "file", b"d": "directory", b"l": "link"}
_SLUG = re.compile(r"[a-z][a-z0-9_]{0,63}")


def text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def milliseconds(seconds: float) -> bytes:
    return b"%d" % max(1, round(seconds * 1000))


def command_fields(argv: Sequence[str], env: Mapping[str, str] | None, cwd: str, stdin: bytes) -> list[bytes]:
    """``env`` null: the sandbox's own environment. Raises ToolFailed (stdin over 4 MiB, a NUL, a bad name)."""
    pairs = [f"{name}={value}" for name, value in (env or {}).items()]
    if len(stdin) > MAX_STDIN:
        raise ToolFailed("stdin_too_large", f"{len(stdin)} bytes; at most {MAX_STDIN}")
    if not argv or any("\0" in part for part in [cwd, *argv, *pairs]) or any("=" in name for name in env or {}):
        raise ToolFailed("bad_command", "no argv, a NUL, or '=' in a variable's name")
    has_env = b"" if env is None else b"1"
    return [text(cwd), has_env, b"%d" % len(argv), *map(text, argv), *map(text, pairs), stdin]


def command_body(*fields: bytes) -> bytes:
    """Raises ToolFailed (argv and environment over some 128 KiB beside a full stdin)."""
    body = pack(*fields)
    if len(body) > MAX_MESSAGE:
        raise ToolFailed("command_too_large", f"{len(body)} bytes; at most {MAX_MESSAGE}")
    return body


def start_body(command: Command) -> bytes:
    fields = command_fields(command.argv, command.env, command.cwd, command.stdin)
    return command_body(milliseconds(command.deadline_s), *fields)


def read_answer(body: bytes) -> list[bytes]:
    """Return the fields of a good answer. Raises ToolFailed for a refusal, Violation for nonsense."""
    fields = unpack(body)
    if not fields or fields[0] not in (b"ok", b"error"):
        raise Violation("not an answer")
    if fields[0] == b"ok":
        return fields[1:]
    kind, detail = (field.decode(errors="replace") for field in (*fields[1:3], b"", b"")[:2])
    raise ToolFailed(kind if _SLUG.fullmatch(kind) else "tool_failed", detail[:500])


def read_exec_result(fields: list[bytes]) -> ExecResult:
    """Raises Violation."""
    if len(fields) not in (6, 11):  # a launcher of before measured nothing
        raise Violation("not a result")
    code, signal = integer(fields[0]), integer(fields[1])
    return ExecResult(
        code,
        signal,
        stdout=fields[4],
        stderr=fields[5],
        truncated=fields[2] == b"1",
        timed_out=fields[3] == b"1",
        **({} if len(fields) == 6 else _measured(fields[6:])),
    )


def read_listing(fields: list[bytes]) -> Listing:
    """Raises Violation."""
    if len(fields) % 4 != 1:
        raise Violation("not a listing")
    entries = [
        ListedFile(os.fsdecode(name), _KINDS.get(kind, "other"), natural(size), natural(mtime) / 1000)
        for name, kind, size, mtime in zip(*(iter(fields[1:]),) * 4, strict=True)
    ]
    return Listing(tuple(sorted(entries, key=lambda e: e.name)), truncated=fields[0] == b"1")


def _measured(fields: list[bytes]) -> dict[str, Any]:
    wall, cpu, rss = (integer(field) or 0 for field in fields[:3])
    names = tuple(os.fsdecode(name) for name in fields[4].split(b"\0")[:-1])
    return {"usage": Usage(wall / 1e6, cpu / 1e6, rss), "left": fields[3] == b"1", "remains": names}

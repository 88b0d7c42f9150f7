"""One file in one process of its own: whatever its reader does, the others' results stand."""

import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble
from service.evidence.integrity.checker.readers import reader_of
from service.evidence.integrity.checker.sniff import HEAD_BYTES, TAIL_BYTES, judged, sniff

CPU_S = 20
MEMORY = 1024 * MIB
OUTPUT = 16 * MIB
MAX_PROBLEMS, MAX_DETAIL = 8, 300
Result = dict[str, Any]


def sniffed(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        return sniff(head, file.read())


def fork_reader(path: Path, ext: str) -> tuple[int, int]:
    """Start a process that reads ``path``; return its pid and the pipe on which its one result comes."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid:
        os.close(send)
        return pid, receive
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.closerange(3, send)
        os.closerange(send + 1, 256)
        _limit()
        os.write(send, json.dumps(examine(path, ext)).encode()[:65536])
        code = 0
    finally:
        os._exit(code)


def _limit() -> None:
    for name, value in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (value, value))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def examine(path: Path, ext: str) -> Result:
    """Return what is to be said of a file."""
    kind = sniffed(path)
    as_kind, mismatch = judged(ext, kind)
    problems = [("type_mismatch", f"the name says {ext}, the content is {kind}")] if mismatch else []
    read = reader_of(as_kind)
    if as_kind is None or read is None:
        return _result(kind, False if mismatch else None, problems, Seen())
    try:
        seen = read(path, as_kind)
    except Trouble as trouble:
        opens = None if trouble.type == "too_large_to_check" else False
        return _result(kind, opens, [*problems, (trouble.type, trouble.detail)], Seen())
    except MemoryError:
        return _result(kind, False, [*problems, ("timeout", f"its reader needs more than {MEMORY >> 20} MiB")], Seen())
    except RecursionError:
        return _result(kind, False, [*problems, ("bomb", "nested too deep")], Seen())
    except Exception as error:  # noqa: BLE001 - whatever a reader does with foreign bytes is a finding about them
        words = f"{type(error).__name__}: {error}"
        return _result(kind, False, [*problems, ("cannot_open", words)], Seen())
    return _result(kind, True, [*problems, *seen.problems], seen)


def _result(kind: str | None, opens: bool | None, problems: list[tuple[str, str]], seen: Seen) -> Result:
    cut = [[name, detail[:MAX_DETAIL]] for name, detail in problems[:MAX_PROBLEMS]]
    return {"sniffed": kind, "opens": opens, "problems": cut, "facts": seen.facts}

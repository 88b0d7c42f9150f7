"""Runs one tool call inside the sandbox: a request as JSON on standard input, its answer as JSON on standard output.

Ships as text (``python3 -I -c``) into images that we do not know: the standard library of Python 3.9, nothing around it.
It is the agent's domain: what it says is data, bounded here and checked again outside.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, BinaryIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TEXT_BYTES = 200_000
IMAGE_BYTES = 2_800_000
MAX_ENTRIES = 2000
LINE_CHARS = 2000
DRAIN_S = 0.3
SHELL = """
__d=$1
[ -f "$__d/env" ] && . "$__d/env" 2>/dev/null
[ -f "$__d/cwd" ] && cd -- "$(cat "$__d/cwd")" 2>/dev/null
__keep() { local c=$?; trap - EXIT; export -p >"$__d/env.new" && mv -f "$__d/env.new" "$__d/env"; pwd >"$__d/cwd"; exit $c; }
trap __keep EXIT
eval "$2"
"""


class Bad(Exception):
    """The request cannot be done; the text is for the model."""


class Kept:
    """The beginning and the end of a stream, and how many bytes it had."""

    def __init__(self, limit: int) -> None:
        self.half, self.total = limit // 2, 0
        self.head, self.tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        free = self.half - len(self.head)
        self.head += data[: max(0, free)]
        self.tail += data[max(0, free) :]
        del self.tail[: -self.half]

    def text(self) -> str:
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        dropped = self.total - len(self.head) - len(self.tail)
        middle = "\n[... %d of %d bytes are not shown ...]\n" % (dropped, self.total) if dropped else ""
        return head + middle + tail


def workspace() -> str:
    return os.environ.get("WORKSPACE") or "/workspace"


def state_dir() -> str:
    path = os.path.join(workspace(), ".home", ".tool_agent")
    os.makedirs(path, exist_ok=True)
    return path


def bash(request: dict[str, Any]) -> dict[str, Any]:
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    script = SHELL if shell.endswith("bash") else SHELL.replace("local c=$?", "c=$?")
    return run([shell, "-c", script, "bash", state_dir(), request["command"]], request)


def python(request: dict[str, Any]) -> dict[str, Any]:
    cwd = os.getcwd()
    try:
        with open(os.path.join(state_dir(), "cwd"), encoding="utf-8", errors="surrogateescape") as file:
            cwd = file.read().rstrip("\n")
    except OSError:
        pass
    return run([sys.executable, "-c", request["code"]], request, cwd if os.path.isdir(cwd) else None)


def run(argv: list[str], request: dict[str, Any], cwd: str | None = None) -> dict[str, Any]:
    kept = Kept(int(request["limit_bytes"]))
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=cwd,
        )
    except (OSError, ValueError) as error:
        raise Bad("cannot run it: %s" % error) from error
    assert child.stdout is not None
    pipe = child.stdout.fileno()
    os.set_blocking(pipe, False)
    timed_out, open_end = follow(child, pipe, kept, float(request["timeout_s"]))
    if open_end:
        leave_reader(pipe)
    code = child.returncode
    return {"text": kept.text(), "bytes": kept.total, "code": code, "timed_out": timed_out, "background": open_end}


def follow(child: subprocess.Popen[bytes], pipe: int, kept: Kept, timeout_s: float) -> tuple[bool, bool]:
    """Read until the program ended; return whether its time was over, and whether others still hold its output."""
    deadline = time.monotonic() + timeout_s
    ended_at = None
    timed_out = False
    at_end = False
    while True:
        more = False if at_end else drain(pipe, kept)
        at_end = at_end or more is None
        now = time.monotonic()
        if child.poll() is None and now > deadline and not timed_out:
            timed_out = True
            kill_group(child)
        if child.poll() is not None:
            ended_at = ended_at or now
            if at_end or now - ended_at > (5 if more else 1) * DRAIN_S:
                return timed_out, not at_end
        if not more:
            time.sleep(0.005)


def drain(pipe: int, kept: Kept) -> bool | None:
    """Read what is there: True if there was something, False if not, None at the end."""
    try:
        data = os.read(pipe, 65536)
    except BlockingIOError:
        return False
    kept.add(data)
    return True if data else None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        child.kill()


def leave_reader(pipe: int) -> None:
    """A program left in the background still writes: somebody must read, or its next line would kill it."""
    if os.fork() != 0:
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.set_blocking(pipe, True)
    while os.read(pipe, 65536):
        pass
    os._exit(0)


def place(request: dict[str, Any]) -> str:
    path: str = request["path"]
    if not path or "\0" in path:
        raise Bad("a path is needed")
    return os.path.join(workspace(), path)


def read_file(request: dict[str, Any]) -> dict[str, Any]:
    path = place(request)
    first, count = max(1, int(request.get("offset") or 1)), max(1, min(int(request.get("limit") or 2000), 20000))
    lines: list[str] = []
    total = size = 0
    with open_regular(path) as file:
        for raw in file:
            total += 1
            if first <= total < first + count and size < TEXT_BYTES:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")[:LINE_CHARS]
                size += len(line)
                lines.append("%6d\t%s" % (total, line))
    shown = first + len(lines) - 1
    note = "\n[%d lines in all; shown: %d to %d]" % (total, first, shown) if shown < total or first > 1 else ""
    return {"text": "\n".join(lines) + note if total else "(the file is empty)"}


def open_regular(path: str) -> BinaryIO:
    if os.path.isdir(path):
        raise Bad("%s is a folder" % path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise Bad("%s is no regular file" % path)
    return open(path, "rb")


def write_file(request: dict[str, Any]) -> dict[str, Any]:
    path, data = place(request), request["content"].encode("utf-8", "replace")
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    replace(path, data)
    return {"text": "wrote %d bytes to %s" % (len(data), path)}


def replace(path: str, data: bytes) -> None:
    """Whole or not at all, so that a call that was killed leaves what was there."""
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    target = os.path.realpath(path)
    new = "%s.new-%d" % (target, os.getpid())
    with open(new, "wb") as file:
        file.write(data)
    os.chmod(new, mode)
    os.rename(new, target)


def edit_file(request: dict[str, Any]) -> dict[str, Any]:
    path = place(request)
    old, new = request["old_text"].encode("utf-8", "replace"), request["new_text"].encode("utf-8", "replace")
    with open_regular(path) as file:
        data = file.read()
    found = data.count(old) if old else 0
    if not found:
        raise Bad("old_text does not occur in %s" % path)
    if found > 1 and not request.get("replace_all"):
        raise Bad("old_text occurs %d times in %s; give more of the surroundings, or replace_all" % (found, path))
    replace(path, data.replace(old, new))
    return {"text": "replaced %d occurrence%s in %s" % (found, "" if found == 1 else "s", path)}


def list_files(request: dict[str, Any]) -> dict[str, Any]:
    top = place({"path": request.get("path") or "."})
    depth = max(1, min(int(request.get("depth") or 2), 10))
    if not os.path.isdir(top):
        raise Bad("%s is no folder" % top)
    rows: list[str] = []
    walk(top, "", depth, rows)
    note = "\n[only the first %d entries]" % MAX_ENTRIES if len(rows) > MAX_ENTRIES else ""
    return {"text": "\n".join(rows[:MAX_ENTRIES]) + note if rows else "(empty)"}


def walk(top: str, below: str, depth: int, rows: list[str]) -> None:
    try:
        with os.scandir(os.path.join(top, below)) as entries:
            hidden = ".home" if not below and os.path.samefile(top, workspace()) else ""  # ours and the programs'
            found = sorted((e for e in entries if e.name != hidden), key=lambda e: e.name)
    except OSError as error:
        rows.append("%s  (%s)" % (below or ".", error.strerror))
        return
    for entry in found:
        path = os.path.join(below, entry.name)
        if len(rows) > MAX_ENTRIES:
            return
        if entry.is_symlink():
            rows.append("%s -> %s" % (path, os.readlink(os.path.join(top, path))))
        elif entry.is_dir():
            rows.append(path + "/")
            if depth > 1:
                walk(top, path, depth - 1, rows)
        else:
            rows.append("%s  %d bytes" % (path, entry.stat(follow_symlinks=False).st_size))


def view_image(request: dict[str, Any]) -> dict[str, Any]:
    path = place(request)
    with open_regular(path) as file:
        data = file.read(IMAGE_BYTES + 1)
    if len(data) > IMAGE_BYTES:
        raise Bad("the image has more than %d bytes; make it smaller first" % IMAGE_BYTES)
    return {"image": base64.b64encode(data).decode(), "text": "%s, %d bytes" % (path, len(data))}


TOOLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "bash": bash, "python": python, "read_file": read_file, "write_file": write_file, "edit_file": edit_file,
    "list_files": list_files, "view_image": view_image,
}  # fmt: skip


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": True, **TOOLS[request["tool"]](request)}
    except Bad as error:
        return {"ok": False, "text": str(error)}
    except OSError as error:
        return {"ok": False, "text": "%s: %s" % (error.filename or "", error.strerror or error)}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)

"""The actions of a remote driver, the same for REST and MCP: what goes to the worker, and what the log says of it."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from service.api.driving import Action, Driven, bounded, shown
from service.api.rendering import Timestamp, View
from service.domain.cleaning import clean_str
from service.domain.errors import Invalid
from service.domain.ids import new_id
from service.domain.limits import KIB, MIB
from service.domain.paths import check_relative_path
from service.lifecycle.bridge_frames import MAX_BODY, Frame
from service.sandboxes.contract import WORKSPACE

MOST_LISTED = 1000
Text = Annotated[str, Field(max_length=128 * KIB)]


class ExecRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    argv: list[Text] = Field(min_length=1, max_length=1000)
    """Program and arguments; for a shell ``["bash", "-c", "…"]``."""
    stdin: str = Field(default="", max_length=MIB)
    cwd: Annotated[str, Field(max_length=4096)] = WORKSPACE
    env: dict[str, Text] = Field(default_factory=dict[str, str], max_length=128)
    """Beside the environment that every program of the run has."""
    timeout_s: float = Field(default=60, gt=0, le=3600)
    """Then the program is killed."""
    output_limit_bytes: int = Field(default=256 * KIB, ge=1, le=MIB)
    """Most bytes kept of each stream; what follows is dropped and marked."""
    call_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    """The same id again does not run the program again: it waits for the first call, or returns its result."""

    def id(self) -> str:
        return self.call_id or new_id("call")


class Executed(View):
    call_id: str
    code: int | None
    signal: int | None
    """Exactly one of ``code`` and ``signal`` is set."""
    stdout: str
    """UTF-8; bytes that are none are replaced. For bytes as they are write a file and read it."""
    stderr: str
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    timed_out: bool


class FileEntry(View):
    name: str
    kind: str
    """file | directory | link | other"""
    size_bytes: int
    modified_at: Timestamp


class FileList(View):
    path: str
    data: list[FileEntry]
    truncated: bool
    """There are more than 1 000."""


class FileWritten(View):
    path: str
    size_bytes: int
    sha256: str


def exec_call(body: ExecRequest, id: str) -> tuple[Action, dict[str, Any]]:
    """Return the call as the log has it, and as the worker gets it. Raises Invalid for NUL or surrogates."""
    texts = [*body.argv, body.cwd, body.stdin, *body.env, *body.env.values()]
    if any(clean_str(text)[1] for text in texts):
        raise Invalid("bad_text", "argv, cwd, env and stdin have no NUL and no lone surrogate")
    arguments = {
        "argv": body.argv,
        "cwd": body.cwd,
        "timeout_s": body.timeout_s,
        "stdin_bytes": len(body.stdin.encode()),
    }
    head = {
        "call": "exec",
        "argv": body.argv,
        "cwd": body.cwd,
        "env": body.env,
        "timeout_s": body.timeout_s,
        "limit_bytes": body.output_limit_bytes,
    }
    return Action(id, "exec", arguments), head


async def execute(driven: Driven, body: ExecRequest) -> Executed:
    """Run a program and wait for its end. Raises Expected."""
    id = body.id()
    action, head = exec_call(body, id)
    stdin = body.stdin.encode()
    frame = await driven.perform(action, head, stdin, seconds=body.timeout_s, environment=True, result=exec_result)
    return executed(frame, id)


def executed(frame: Frame, id: str) -> Executed:
    done = frame.head
    at = int(done["stdout_bytes"])
    out, err = frame.body[:at], frame.body[at:]
    return Executed(
        call_id=id,
        code=done["code"],
        signal=done["signal"],
        stdout=_text(out),
        stderr=_text(err),
        stdout_bytes=len(out),
        stderr_bytes=len(err),
        truncated=done["truncated"],
        timed_out=done["timed_out"],
    )


def exec_result(frame: Frame) -> dict[str, Any]:
    """What the log says of a program's end."""
    at = int(frame.head["stdout_bytes"])
    out, err = frame.body[:at], frame.body[at:]
    done = {name: frame.head[name] for name in ("code", "signal", "truncated", "timed_out")}
    sizes = {"stdout_bytes": len(out), "stderr_bytes": len(err)}
    return {**done, **sizes, "output": shown(out)[0], "stderr": shown(err)[0], "is_error": done["code"] != 0}


async def read_file(driven: Driven, path: str) -> bytes:
    """Raises Expected, NotFound ``file_not_found`` and TooLarge among them."""
    action = Action(new_id("call"), "read_file", {"path": _checked(path)})
    head = {"call": "read_file", "path": path, "limit_bytes": MAX_BODY}

    async def work() -> bytes:
        return (await driven.perform(action, head, result=_size_and_digest)).body

    return await bounded(driven.state, work)


async def write_file(driven: Driven, path: str, data: bytes, *, executable: bool = False) -> FileWritten:
    """Raises Expected."""
    digest = hashlib.sha256(data).hexdigest()
    written = {"path": _checked(path), "bytes": len(data), "sha256": digest}
    head = {"call": "write_file", "path": path, "mode": 0o755 if executable else 0o644}
    action = Action(new_id("call"), "write_file", written)
    await driven.perform(action, head, data, result=lambda _: {"bytes": len(data), "is_error": False})
    return FileWritten(path=path, size_bytes=len(data), sha256=digest)


async def list_files(driven: Driven, path: str) -> FileList:
    """Raises Expected."""
    action = Action(new_id("call"), "list_files", {"path": _checked(path) if path else ""})
    head = {"call": "list_files", "path": path, "limit": MOST_LISTED}
    frame = await driven.perform(action, head, result=lambda f: {"bytes": len(f.body), "is_error": False})
    found: list[dict[str, Any]] = json.loads(frame.body)
    return FileList(path=path, data=[_entry(e) for e in found], truncated=bool(frame.head["truncated"]))


def _entry(found: dict[str, Any]) -> FileEntry:
    at = datetime.fromtimestamp(min(max(0.0, float(found["mtime"])), 253402300799.0), UTC)
    name = clean_str(str(found["name"]))[0]
    return FileEntry(name=name, kind=found["kind"], size_bytes=found["size_bytes"], modified_at=at)


def _size_and_digest(frame: Frame) -> dict[str, Any]:
    return {"bytes": len(frame.body), "sha256": hashlib.sha256(frame.body).hexdigest(), "is_error": False}


def _checked(path: str) -> str:
    try:
        return check_relative_path(path)
    except ValueError as error:
        raise Invalid("bad_path", str(error)) from error


def _text(data: bytes) -> str:
    return clean_str(data.decode(errors="replace"))[0]

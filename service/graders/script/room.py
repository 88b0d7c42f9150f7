"""One run of a task's verifier: a fresh room without a network, the sealed deliverable, the hidden tests, one script.

The script runs alone: when it ends, everything that it or the candidate's code started is killed, and only then is the
reward read. Tests and candidate share a user (CONTRACTS 9 names the method as the exception), which the verdict says.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.run_states import ContainerState
from service.graders.contract import GraderBusy, GraderFault
from service.graders.script.reward import MAX_BYTES
from service.graders.script.settings import ScriptSettings
from service.sandboxes.contract import (
    WORKSPACE,
    FileSource,
    LauncherLost,
    Sandbox,
    SandboxError,
    SandboxGone,
    SandboxRefused,
    ToolFailed,
)
from service.sandboxes.rooms import Rooms

SLACK_S, TOOL_S = 20.0, 60.0
OUTPUT_BYTES = 256 * 1024
LOGS = "/logs/verifier"
_ENV = {"HOME": "/tmp", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}  # noqa: S108
_PLACE = 'cp -R "$1/." /tests/ && rm -rf "$1" && mkdir -p /logs/verifier /logs/agent /logs/artifacts'


@dataclass(frozen=True, slots=True)
class Seen:
    """How the script went, as our launcher saw it, and what it left."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    killed: bool = False
    """The programs inside ended the room."""
    left: bool = False
    """Processes were there when the script ended; they were killed before the reward was read."""
    stdout: bytes = b""
    stderr: bytes = b""
    reward_text: bytes | None = None
    reward_json: bytes | None = None
    tests: bytes | None = None
    runtime: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    environment: str
    delivered: Sequence[tuple[str, Path]]
    """Path below the workspace, file of the content store; visible files included."""
    tests: Sequence[tuple[str, Path]]
    """Path below /tests."""


async def run_script(rooms: Rooms, settings: ScriptSettings, material: Material) -> Seen:
    """Raises GraderBusy (engine away, room lost), GraderFault (image or files unusable)."""
    try:
        async with rooms.open(material.environment, settings.limits(), runs_code=True, verifier=True) as box:
            await _furnish(box, material)
            return await _run(box, settings)
    except (SandboxRefused, ToolFailed) as error:
        raise GraderFault("verifier_unusable", f"{error.type}: {error.detail}") from error
    except (SandboxError, OSError) as error:
        lost = isinstance(error, SandboxGone | LauncherLost)
        raise GraderBusy("room_lost" if lost else "engine_unavailable", str(error)) from error


async def _furnish(box: Sandbox, material: Material) -> None:
    folder = f".tests-{secrets.token_hex(8)}"
    # Modes are not sealed: what was a program may be run again.
    sources = [FileSource(path, file=file, mode=0o755) for path, file in material.delivered]
    sources += [FileSource(f"{folder}/{path}", file=file, mode=0o755) for path, file in material.tests]
    await box.write_files(sources)
    argv = ("/bin/sh", "-c", _PLACE, "place", f"{WORKSPACE}/{folder}")
    placed = await box.exec(argv, env=_ENV, timeout_s=TOOL_S, alone=True)
    if placed.code != 0:
        raise ToolFailed("tests_not_placed", placed.stderr.decode(errors="replace")[:500])


async def _run(box: Sandbox, settings: ScriptSettings) -> Seen:
    runtime = box.spec.runtime
    try:
        done = await box.exec(
            settings.command,
            env={**_ENV, **settings.env},
            timeout_s=settings.timeout_s,
            limit_bytes=OUTPUT_BYTES,
            alone=True,
        )
        texts = {name: await _read(box, f"{LOGS}/{name}") for name in ("reward.txt", "reward.json", "ctrf.json")}
    except LauncherLost:
        return await _why_lost(box, runtime)
    out_of_memory = bool((await box.inspect()).oom_kills)
    return Seen(
        done.code, done.signal, done.timed_out, out_of_memory, stdout=done.stdout, stderr=done.stderr, left=done.left, runtime=runtime,
        reward_text=texts["reward.txt"], reward_json=texts["reward.json"], tests=texts["ctrf.json"],
    )  # fmt: skip


async def _read(box: Sandbox, path: str) -> bytes | None:
    """Return a regular file of the logs; null where there is none, or it is larger than anybody needs."""
    script = 'test -f "$1" && ! test -L "$1" && exec cat "$1"'
    argv = ("/bin/sh", "-c", script, "read", path)
    read = await box.exec(argv, env=_ENV, timeout_s=SLACK_S, limit_bytes=MAX_BYTES, alone=True)
    return read.stdout if read.code == 0 and not read.truncated else None


async def _why_lost(box: Sandbox, runtime: str) -> Seen:
    """Tell by the engine's word whose doing it was that the launcher is gone. Raises GraderBusy where it was not theirs."""
    report = await box.inspect()
    if report.state is ContainerState.GONE or report.engine_restarted:
        raise GraderBusy("room_lost", f"the engine lost {box.id}")
    # A launcher that is silent in a running room was stopped from inside, or the host starved it: the same again tells.
    return Seen(killed=not report.oom_kills, out_of_memory=bool(report.oom_kills), runtime=runtime)

"""Runs the real agent programs in real sandboxes against the scripted provider and keeps what they print.

``python tools/record_fixtures.py [KIND …] [--case CASE] [--show]``: standard output goes to
``tests/fixtures/scaffolds/<kind>/<case>.jsonl``, without what differs from run to run only where it is long. ``--show``
prints outcome, requests and what was read of the lines, and writes nothing. Needs the engine and the kits
(``make images ALL=1``).
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.domain.agents import AgentSettings, AgentSpec, ScaffoldManifest
from service.domain.limits import GIB, MIB, Limits
from service.domain.models import Dialect
from service.domain.tasks import TaskManifest
from service.models.scripted.exchanges import Exchange
from service.models.scripted.scenario import Action, Scenario
from service.models.scripted.server import Scripted
from service.models.scripted.shipped import success_steps
from service.sandboxes.contract import (
    HOME,
    OUTPUT_DIR,
    WORKSPACE,
    Command,
    Exited,
    FileSource,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    ToolFailed,
)
from service.sandboxes.docker.backend import DockerBackend
from service.scaffolds.contract import ModelChoice, Plan, PlanContext, Translated
from service.scaffolds.registry import scaffold_for

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "scaffolds"
LIMITS = Limits(memory_bytes=3 * GIB, cpus=2, disk_bytes=512 * MIB, inodes=50_000, wall_clock_s=600)
MODELS = {
    "claude_code": ModelChoice("m", "claude-sonnet-4-6", Dialect.ANTHROPIC, efforts=("low", "medium", "high")),
    "codex": ModelChoice("m", "gpt-5.5", Dialect.OPENAI, efforts=("low", "medium", "high", "xhigh")),
    "gemini_cli": ModelChoice("m", "gemini-2.5-pro", Dialect.GEMINI),
    "opencode": ModelChoice("m", "gpt-5.5", Dialect.OPENAI, efforts=("low", "medium", "high")),
    "openclaw": ModelChoice("m", "gpt-5.5", Dialect.OPENAI, efforts=("low", "medium", "high")),
    "openhands": ModelChoice("m", "gpt-5.5", Dialect.OPENAI, efforts=("low", "medium", "high")),
    "mini_swe": ModelChoice("m", "gpt-5.5", Dialect.OPENAI, efforts=("low", "medium", "high")),
}
_FAILING = Scenario(name="tool-error", steps=[Action(run="cat /nowhere/at/all"), *success_steps()])
_TASK = TaskManifest(name="recorded", instruction="Write a report of the files in /workspace to /workspace/output.")


@dataclass(frozen=True, slots=True)
class Case:
    scenario: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


CASES = {
    "success": Case("success", {"effort": "max", "system_prompt": "-Be brief.\n"}),
    "thinking": Case("thinking"),
    "tool_error": Case("tool-error"),
    "unauthorized": Case("e401"),
    "bad_request": Case("e400"),
    "max_turns": Case("endless", {"max_turns": 2}),
}
_WITHOUT_TURNS = {"codex", "opencode", "openclaw"}
_WITHOUT_SYSTEM_PROMPT = {"openclaw"}
_LONG_LINE = 12_000


@dataclass(slots=True)
class Recording:
    """What one program did."""

    plan: Plan
    stdout: bytes = b""
    stderr: bytes = b""
    ended: Exited | None = None
    first_request_s: float | None = None
    """From the start of the program."""
    requests: list[Exchange] = field(default_factory=list[Exchange])
    delivered: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def read(self, kind: str, manifest: ScaffoldManifest) -> tuple[list[Translated], Any, bool]:
        """Return events, report and whether the outcome rule is met."""
        parser = scaffold_for(kind).line_parser(manifest)
        assert parser is not None
        events = [event for line in self.stdout.split(b"\n") for event in parser.line("stdout", line)]
        ended = self.ended is not None and scaffold_for(kind).completed(self.ended.report, manifest, parser.report())
        return events, parser.report(), ended


def manifest_of(kind: str) -> ScaffoldManifest:
    return ScaffoldManifest(name="recorded", version="1", kind=kind, kit=f"kits/{kind}")


@asynccontextmanager
async def open_backend() -> AsyncGenerator[SandboxBackend]:
    """Give an engine with its data in a folder of its own; nothing of it is left."""
    data = Path(tempfile.mkdtemp(prefix="workstead-record-"))
    backend = DockerBackend(data, f"record-{data.name[-8:].lower().replace('_', '-').strip('-')}")
    try:
        yield backend
    finally:
        for sandbox_id in await backend.list_ids():
            await backend.remove(sandbox_id)
        for volume in await backend.engine.volumes("org.workstead.kit"):
            if str(volume["Name"]).startswith(f"{backend.deployment}-"):
                await backend.engine.remove_volume(str(volume["Name"]))
        await backend.close()
        shutil.rmtree(data, ignore_errors=True)


async def run_program(
    backend: SandboxBackend, kind: str, case: Case, model: ModelChoice | None = None, environment: str = "base"
) -> Recording:
    """Run one program to its end, in a sandbox without network and a port 80 that leads to the scripted provider."""
    context = PlanContext(
        sample=1, seconds=LIMITS.wall_clock_s, deadline_unix=int(time.time() + LIMITS.wall_clock_s), workspace=WORKSPACE,
        home=HOME, output_dir=OUTPUT_DIR, instruction_file=f"{HOME}/instruction.md", model=model or MODELS[kind],
        settings=AgentSettings.of(dict(case.settings)),
    )  # fmt: skip
    plan = scaffold_for(kind).plan(_TASK, AgentSpec(scaffold="recorded@1", model="m"), manifest_of(kind), context)
    spec = SandboxSpec(
        await backend.resolve_image(environment), kit=await backend.resolve_image(f"kits/{kind}"), limits=LIMITS
    )
    sandbox = await backend.make(spec)
    try:
        with Scripted([_FAILING]) as provider:
            recording = await _run(sandbox, plan, case, provider)
            recording.requests = provider.requests()
        return recording
    finally:
        await sandbox.kill()
        await sandbox.destroy()


async def _run(sandbox: Sandbox, plan: Plan, case: Case, provider: Scripted) -> Recording:
    recording = Recording(plan)
    await sandbox.write_files([FileSource(w.path, data=w.data, mode=w.mode) for w in plan.written])
    token = f"sk-scripted-{case.scenario}"
    env = {**plan.env, **dict.fromkeys((*plan.token_variables, "WORKSTEAD_RUN_TOKEN"), token)}
    server = await asyncio.start_server(lambda r, w: _pipe(r, w, provider.port), sock=await sandbox.plant(80))
    async with server:
        began = time.monotonic()
        await sandbox.start(Command(list(plan.argv), env, plan.stdin, WORKSPACE, LIMITS.wall_clock_s))
        watch = asyncio.create_task(_first_request(provider, recording, began))
        async for piece in sandbox.output():
            if isinstance(piece, Exited):
                recording.ended = piece
                break
            setattr(recording, piece.stream, getattr(recording, piece.stream) + piece.data)
            await sandbox.ack(piece.stream, piece.offset + len(piece.data))
        watch.cancel()
    for name in ("report.csv", "summary.md"):
        with suppress(ToolFailed):
            recording.delivered[name] = await sandbox.read_file(f"output/{name}")
    return recording


async def _first_request(provider: Scripted, recording: Recording, began: float) -> None:
    while not provider.requests():  # noqa: ASYNC110 - the log of another thread
        await asyncio.sleep(0.01)
    recording.first_request_s = time.monotonic() - began


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    there, back = await asyncio.open_connection("127.0.0.1", port)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    await asyncio.gather(copy(reader, back), copy(there, writer))


def show(kind: str, name: str, recording: Recording) -> None:
    events, report, completed = recording.read(kind, manifest_of(kind))
    print(f"== {kind} {name}: {recording.ended}", f"first request {recording.first_request_s}", sep="\n")
    for asked in recording.requests:
        print("  ", asked.method, asked.path, asked.query, asked.model, asked.status, asked.usage)
    for event in events:
        print("  ", event.type, json.dumps(event.payload)[:300])
    print(
        "  ", report, "completed" if completed else "NOT completed", {n: len(d) for n, d in recording.delivered.items()}
    )
    print(recording.stderr.decode(errors="replace")[-2000:])


async def record(kinds: Sequence[str], cases: Sequence[str], *, showing: bool) -> None:
    async with open_backend() as backend:
        for kind in kinds:
            for name in cases:
                if name == "max_turns" and kind in _WITHOUT_TURNS:
                    continue
                recording = await run_program(backend, kind, _fitting(kind, CASES[name]))
                if showing:
                    show(kind, name, recording)
                    continue
                target = FIXTURES / kind / f"{name}.jsonl"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(b"\n".join(_kept(line) for line in recording.stdout.split(b"\n")))
                print(f"{target.relative_to(FIXTURES)}: {len(recording.stdout)} bytes")


def _fitting(kind: str, case: Case) -> Case:
    refused = {"system_prompt"} if kind in _WITHOUT_SYSTEM_PROMPT else set[str]()
    return Case(case.scenario, {name: value for name, value in case.settings.items() if name not in refused})


def _kept(line: bytes) -> bytes:
    """Return the line, of a long one only its kind: a program's own prompt and tools are no matter of parsers."""
    if len(line) <= _LONG_LINE:
        return line
    said: dict[str, Any] = json.loads(line)
    return json.dumps({name: said[name] for name in ("type", "kind") if name in said} | {"cut": len(line)}).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description="record what the real agent programs print")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--show", action="store_true", help="print, do not write")
    chosen = parser.parse_args()
    asyncio.run(record(chosen.kinds or list(MODELS), chosen.case or list(CASES), showing=chosen.show))
    return 0


if __name__ == "__main__":
    sys.exit(main())

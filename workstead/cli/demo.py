"""``workstead demo``: the whole service, from nothing to verdicts, with three real tasks and five agents."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, fail, in_words, line
from workstead.cli.demo_model import add_models, scripted_models, solving
from workstead.cli.engine import Engine
from workstead.cli.leftovers import leftovers
from workstead.cli.run import agent_of, report, submit
from workstead.cli.service_process import LocalService
from workstead.cli.watch import Watched, print_event, watch
from workstead.config import Connection, resolve
from workstead.errors import WorksteadError
from workstead.models import Event, Run

ROOT = Path(__file__).resolve().parents[2]
SOLVER = ROOT / "demo" / "solver"


@dataclass(frozen=True)
class DemoAgent:
    scaffold: str
    """A manifest of the demo (without ``demo-`` and ``.toml``), or a shipped scaffold."""
    passes: bool
    model: str | None = None


AGENTS = {
    "demo-solver@1": DemoAgent("solver", True),
    "demo-oracle@1": DemoAgent("oracle", True),
    "demo-nop@1": DemoAgent("nop", False),
    "demo · Claude Code": DemoAgent("claude-code@latest", True, "scripted/messages"),
    "demo · tool agent": DemoAgent("tool-agent@latest", True, "scripted/responses"),
}
"""Label of each agent → what it is, and whether it must pass."""
SLICES_S = 600.0
GONE_S = 15.0
"""How long after the service's end the kernel may take to let go of the last of it."""

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for deliverables and the service's log")]
Attach = Annotated[bool, typer.Option(help="Use the running service instead of starting one")]


class DemoFailed(WorksteadError):
    """Something is not as it should be; the message says what."""


@in_words
def demo(output: Output = Path("demo_output"), attach: Attach = False) -> None:
    """Start the service, run real tasks, print events, verdicts and deliverables, stop it, leave nothing behind.

    Claude Code and our tool agent are the real ones; their model is a script (no key is needed). Exit code 0 only if the
    oracle, the solver and both agents pass every task, the doer of nothing none, and nothing is left. Then a task or two of
    each benchmark, judged and rated by scripts, as far as the first table of its report.
    """
    if not (ROOT / "demo" / "tasks").is_dir():
        raise fail(f"the demo's tasks are part of the source tree; there is no {ROOT / 'demo'}")
    started = time.monotonic()
    folder = new_folder(output)
    with tempfile.TemporaryDirectory(prefix="workstead-demo-tasks-") as made:
        tasks = make_tasks(Path(made))
        with service(attach, folder) as there, _models(attach, folder) as model_url:
            line(f"service at {there.url}, deliverables will lie in {folder}")
            runs = asyncio.run(_run(there, tasks, folder, model_url))
            if model_url is not None:
                _benchmarks(there, folder)
    agents = _agents(model_url)
    if wrong := unexpected(runs, agents):
        raise fail("\n".join(["the demo did not end as it should:", *wrong]), FAILED)
    passing = ", ".join(label for label, made_of in agents.items() if made_of.passes)
    line(f"as expected: {passing} pass all, demo-nop@1 none; {time.monotonic() - started:.0f} s in all", "green")


def _benchmarks(there: Connection, folder: Path) -> None:
    """Show a slice of each benchmark with the running service. Raises DemoFailed."""
    line("\nA slice of each benchmark (`make demo-papers` shows all of them, with exports):", "bold")
    command = [sys.executable, "-m", "demo.benchmarks.papers", "--slice", "--attach", "-o", str(folder / "benchmarks")]
    reach = {"WORKSTEAD_URL": there.url, "WORKSTEAD_TOKEN": there.token}
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **reach}, timeout=SLICES_S, check=False)
    if done.returncode != 0:
        raise DemoFailed("a benchmark's slice did not end as it should: see above")


@contextmanager
def _models(attach: bool, folder: Path) -> Generator[str | None]:
    """Give the URL of the scripted models; null where the service's gateway, perhaps elsewhere, could not reach them."""
    if attach:
        line("without the agents that need a model: theirs would be on this machine's loopback")
        yield None
        return
    with scripted_models(solving(SOLVER), folder) as url:
        yield url


def _agents(model_url: str | None) -> dict[str, DemoAgent]:
    return {label: made_of for label, made_of in AGENTS.items() if made_of.model is None or model_url is not None}


def new_folder(output: Path) -> Path:
    """Return ``output`` made new; earlier demos' output is kept beside it under a number."""
    folder, number = output.absolute(), 1
    while folder.exists():
        number += 1
        folder = output.absolute().with_name(f"{output.name}.{number}")
    folder.mkdir(parents=True)
    return folder


def make_tasks(target: Path) -> list[Path]:
    """Write the demo's task directories with their office files. Raises DemoFailed."""
    command = [sys.executable, "-m", "demo.make_files", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise DemoFailed(f"the demo's files cannot be made (`make setup`):\n{done.stderr[-2000:]}")
    return [Path(path) for path in done.stdout.split("\n") if path]


@contextmanager
def service(attach: bool, folder: Path) -> Generator[Connection]:
    """Give a running service: the configured one, else one of our own that is gone afterwards, traces included."""
    if attach:
        yield resolve()
        return
    # Below /var/tmp, open to pass through: PostgreSQL runs as a user of its own and must reach its directory.
    data_dir = Path(tempfile.mkdtemp(prefix="workstead-demo-", dir="/var/tmp"))
    data_dir.chmod(0o711)
    try:
        with LocalService(data_dir, folder / "service.log") as running:
            yield running.connection
    finally:
        with Engine() as engine:
            _assert_gone(engine, data_dir)
        shutil.rmtree(data_dir)


def _assert_gone(engine: Engine, data_dir: Path) -> None:
    label = data_dir / "deployment"
    deployment = label.read_text(encoding="utf-8").strip() if label.exists() else None
    deadline = time.monotonic() + GONE_S
    while left := [*(engine.of_deployment(deployment) if deployment else []), *leftovers(data_dir)]:
        if time.monotonic() > deadline:
            raise DemoFailed("\n".join([f"the service has stopped and left behind ({data_dir} is kept):", *left]))
        time.sleep(0.2)
    line("the service has stopped; no process, container, volume, mount or loop device is left")


async def _run(there: Connection, tasks: Sequence[Path], folder: Path, model_url: str | None) -> list[Run]:
    async with AsyncClient(there.url, there.token) as client:
        if model_url is not None:
            await add_models(client, model_url)
        agents = [await _agent(client, label, made_of) for label, made_of in _agents(model_url).items()]
        ids = [(await client.tasks.create(path)).id for path in tasks]
        runs = await submit(client, ids, agents, 1, {"demo": str(os.getpid())})
        line(f"{len(runs)} runs: {len(ids)} tasks, {len(agents)} agents")
        try:
            ended = await watch(client, runs, _say)
        except BaseException:
            await _discard(client, runs)
            raise
        await report(client, ended, folder)
        return ended


def _say(watched: Watched, event: Event) -> None:
    """Print an event, but for what others tell better: the lines of JSON that are made into events, our loop's journal."""
    agent = AGENTS.get(watched.run.agent.label)
    in_json = event.type == "output" and agent is not None and agent.model is not None
    if not in_json and event.type != "loop.step":
        print_event(watched, event)


async def _agent(client: AsyncClient, label: str, made_of: DemoAgent) -> str:
    if made_of.model is None:
        return await agent_of(client, ROOT / "demo" / "scaffolds" / f"{made_of.scaffold}.toml")
    return (await client.agents.create(made_of.scaffold, model=made_of.model, label=label)).id


async def _discard(client: AsyncClient, runs: Sequence[Run]) -> None:
    """Stop what still runs, so that the service leaves no container behind when it is stopped."""
    line("stopping the runs", "yellow")
    async with asyncio.timeout(60):
        for run in runs:
            await client.runs.stop(run.id, "discard")
        for run in runs:
            await client.runs.wait(run.id)


def unexpected(runs: Sequence[Run], agents: Mapping[str, DemoAgent]) -> list[str]:
    """Return what is not as it should be: every run graded, and passed or not as its agent must."""
    wrong = [f"{r.task.name} · {r.agent.label}: {r.outcome} ({r.ended_because})" for r in runs if r.outcome != "graded"]
    for run in runs:
        must_pass = agents[run.agent.label].passes if run.agent.label in agents else None
        if run.outcome == "graded" and must_pass is not run.verdict.passed:
            said = f"{run.verdict.score:g}/{run.verdict.max_score:g}" if run.verdict.score is not None else "no score"
            wrong.append(f"{run.task.name} · {run.agent.label}: {said}, which should {'' if must_pass else 'not '}pass")
    return wrong if len(runs) == len(agents) * 3 else [*wrong, f"{len(runs)} runs instead of {len(agents) * 3}"]

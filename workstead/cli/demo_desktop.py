"""``workstead demo-desktop``: an agent that works on a screen, watched live in a browser."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, fail, in_words, line
from workstead.cli.demo import ROOT, DemoFailed, new_folder, service
from workstead.cli.demo_model import SCENARIO, add_models, scripted_models
from workstead.cli.run import report, submit
from workstead.cli.watch import print_event, watch
from workstead.config import Connection
from workstead.models import Run

TASK = ROOT / "demo" / "desktop" / "tasks" / "price-update"
MODELS = {"scripted/computer": {"upstream_id": "claude-sonnet-4-6", "dialect": "anthropic"}}
RESULT = "output/result.xlsx"

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the deliverable and the service's log")]


@in_words
def demo_desktop(output: Output = Path("demo_output")) -> None:
    """Start the service and let a scripted model edit a price list in LibreOffice, on a screen that can be watched.

    The loop, the desktop and the programs on it are the real ones. Exit code 0 only if the workbook is as the task
    wants it and nothing is left behind.
    """
    if not TASK.is_dir():
        raise fail(f"the demo's task is part of the source tree; there is no {TASK}")
    folder = new_folder(output)
    script = _module("demo.desktop.scenario", SCENARIO)
    with service(False, folder) as there, scripted_models(script, folder) as model_url:
        (folder / "token").write_text(there.token or "", encoding="utf-8")
        (folder / "token").chmod(0o600)
        line(f"service at {there.url}; to watch, sign in there with the token in {folder / 'token'}")
        run = asyncio.run(_run(there, folder, model_url))
    if run.ended_because != "completed":
        raise fail(f"the run ended because of {run.ended_because}, not as completed", FAILED)
    line(_module("demo.desktop.check", str(next(folder.glob(f"*/{RESULT}"), folder / RESULT))).strip(), "green")


async def _run(there: Connection, folder: Path, model_url: str) -> Run:
    async with AsyncClient(there.url, there.token) as client:
        await add_models(client, model_url, MODELS)
        agent = await client.agents.create(
            "computer-use@latest", model="scripted/computer", label="demo · computer use"
        )
        task = await client.tasks.create(TASK)
        runs = await submit(client, [task.id], [agent.id], 1, {"demo": str(os.getpid())})
        line(f"live: {there.url}/runs/{runs[0].id}/screen")
        try:
            ended = await watch(client, runs, print_event)
        except BaseException:
            async with asyncio.timeout(60):
                await client.runs.stop(runs[0].id, "discard")
                await client.runs.wait(runs[0].id)
            raise
        await report(client, ended, folder)
        return ended[0]


def _module(name: str, *arguments: str) -> str:
    """Run a module of the source tree's demo; return what it prints. Raises DemoFailed."""
    done = subprocess.run(
        [sys.executable, "-m", name, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise DemoFailed(f"{name}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout

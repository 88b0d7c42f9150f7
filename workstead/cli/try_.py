"""``workstead try``: a scaffold's sandbox, made as for a run, with nothing started in it, for whoever writes scaffolds."""

import asyncio
import shlex
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import in_words
from workstead.cli.run import agent_of
from workstead.cli.run_shell import open_shell
from workstead.cli.selection import Narrowing, select
from workstead.cli.watch import note
from workstead.sync import Client

TOKEN = "WORKSTEAD_RUN_TOKEN"  # noqa: S105 - a name

ScaffoldName = Annotated[str, typer.Argument(help="Scaffold manifest to register, or NAME@VERSION", show_default=False)]
TaskName = Annotated[str, typer.Option("--task", help="Task directory, id or name", show_default=False)]
Model = Annotated[str | None, typer.Option("--model", help="Catalogue name of the agent's model")]
Shell = Annotated[bool, typer.Option("--shell", help="Open a shell in it; the sandbox ends with the shell")]
Grade = Annotated[bool, typer.Option("--grade", help="Grade what lies there at the end, instead of discarding it")]


@in_words
def try_(
    scaffold: ScaffoldName, task: TaskName, model: Model = None, shell: Shell = False, grade: Grade = False
) -> None:
    """Make a sandbox as a run of SCAFFOLD on the task would have it, and wait: you start the program, or look around.

    The run is *assisted*: no report counts it. Needs a token with runs:write, runs:drive, and runs:debug for --shell.
    """
    run_id = asyncio.run(_make(scaffold, task, model))
    code = 0
    with Client() as client:
        note(f"{run_id}: its sandbox is being made")
        with client.drive(run_id, holder="workstead try") as box:
            argv = client.runs.attempt(run_id, box.lease.attempt).argv or []
            note(f"it would be started by: {shlex.join(argv) or '(nothing)'}")
            if box.lease.run_token:
                note(f"for model calls inside: export {TOKEN}={box.lease.run_token}")
            try:
                code = open_shell(run_id) if shell else _wait(run_id)
            finally:
                if grade:
                    box.finish("tried by hand")
                else:
                    client.runs.stop(run_id, "discard")
    raise typer.Exit(code)


async def _make(scaffold: str, task: str, model: str | None) -> str:
    async with AsyncClient() as client:
        (task_id,) = await select(client, [task], Narrowing(limit=1))
        agent = await agent_of(client, scaffold)
        if model is not None:
            made = await client.agents.get(agent)
            agent = (await client.agents.create(made.scaffold or scaffold, model=model)).id
        run = await client.runs.create(task_id, agent, manual=True, max_attempts=1, labels={"try": scaffold[-64:]})
        return run.id


def _wait(run_id: str) -> int:
    note(f"it waits until you press Enter; meanwhile: workstead runs shell {run_id}")
    typer.prompt("", default="", show_default=False, prompt_suffix="")
    return 0

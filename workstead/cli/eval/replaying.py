"""``workstead eval replay``: an evaluation once more from its recordings, and whether its tables come out the same."""

import asyncio
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, GRADED, emit, in_words, line
from workstead.cli.eval import options as o
from workstead.cli.eval.alike import differences
from workstead.cli.eval.begin import words_of_refusal
from workstead.cli.eval.service import service
from workstead.cli.eval.watching import follow, go_on
from workstead.cli.options import Json
from workstead.cli.watch import note
from workstead.config import Connection

MOST_SAID = 50
Title = Annotated[str | None, typer.Option("--name", help="Name of the new evaluation")]


@in_words
def replay(evaluation: o.Id, name: Title = None, detach: o.Detach = False, as_json: Json = False) -> None:
    """Do an evaluation again from its recordings: models and judges answer as they did, and no provider is asked.

    Then say whether each table of its report is the same but for times; exit code 1 where one is not.
    """
    with service() as there:
        code = asyncio.run(_replayed(there, evaluation, name, detach=detach, as_json=as_json))
    raise typer.Exit(code)


async def _replayed(there: Connection, evaluation: str, name: str | None, *, detach: bool, as_json: bool) -> int:
    async with AsyncClient(there.url, there.token) as client:
        title = name or f"{(await client.evaluations.get(evaluation)).name[:100]}, replayed"
        async with words_of_refusal():
            drafted = await client.evaluations.create({"name": title, "replay_of": evaluation})
        started = await client.evaluations.start(drafted.id, drafted.revision)
        if detach:
            emit(started) if as_json else line(drafted.id)
            note(go_on(drafted.id))
            return GRADED
        code = await follow(client, drafted.id, as_json=as_json)
        if (await client.evaluations.get(drafted.id)).state != "done":
            return code
        return await _compared(client, evaluation, drafted.id)


async def _compared(client: AsyncClient, before: str, after: str) -> int:
    reports = [await client.reports.of(one) for one in (before, after)]
    found = list(differences(*reports))
    for said in found[:MOST_SAID]:
        note(said)
    if found:
        note(f"{after} differs from {before} in {len(found)} places")
        return FAILED
    note(f"all {len(reports[0].tables)} tables of {after} are those of {before}, but for times")
    return GRADED

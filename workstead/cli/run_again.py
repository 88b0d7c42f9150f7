"""``workstead runs rerun``: a run again, with something changed, fresh or from its recording."""

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import RunId, emit, in_words, line
from workstead.cli.options import Json, pairs

Replay = Annotated[
    bool, typer.Option("--replay", help="Answer from what the models said then; no provider is asked, nothing is paid")
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Another model of the catalogue")]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--setting", "-s", help="KEY=VALUE, a setting of the agent; JSON or text, null takes it away; repeatable"
    ),
]
ChangedLimit = Annotated[list[str] | None, typer.Option("--limit", help="KEY=VALUE, e.g. wall_clock_s=600; repeatable")]
NewLabel = Annotated[
    list[str] | None, typer.Option("--label", "-l", help="KEY=VALUE, in place of the labels; repeatable")
]


@in_words
def rerun(
    run: RunId,
    replay: Replay = False,
    model: Model = None,
    setting: Setting = None,
    limit: ChangedLimit = None,
    label: NewLabel = None,
    as_json: Json = False,
) -> None:
    """Submit a run again as a new one; what is not named stays as it was."""
    overrides: dict[str, Any] = {"settings": values(setting), "limits": values(limit)}
    overrides |= {"model": model} if model is not None else {}
    overrides |= {"labels": dict(pairs(label))} if label else {}

    async def work() -> None:
        async with AsyncClient() as client:
            again = await client.runs.rerun(run, mode="replay" if replay else "fresh", overrides=overrides)
            emit(again) if as_json else line(f"{again.id}: {again.phase}, {again.agent.label} on {again.task.name}")

    asyncio.run(work())


def values(given: Sequence[str] | None) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` options whose values are JSON, or text where they are none. Raises typer.BadParameter."""
    return {key: _value(text) for key, text in pairs(given)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

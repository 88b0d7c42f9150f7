"""``workstead grade jobbench``: result files of JobBench's own harness, out of gradings and into them."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import RunId, emit, fail, in_words, line
from workstead.cli.options import Json
from workstead.models import Grading

MOST_BYTES = 64 << 20

jobbench_app = typer.Typer(help="Result files of JobBench's harness.", no_args_is_help=True)


@jobbench_app.command("export")
@in_words
def export(
    grading: Annotated[str, typer.Argument(help="Grading of method rubric_chain, grd_…", show_default=False)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; else standard output")] = None,
) -> None:
    """Write a grading as JobBench's harness would have."""
    text = json.dumps(asyncio.run(_export(grading)), ensure_ascii=output is None, indent=2)
    if output is None:
        line(text)
    else:
        output.write_text(f"{text}\n", encoding="utf-8")


@jobbench_app.command("import")
@in_words
def import_(
    run: RunId,
    file: Annotated[Path, typer.Argument(help="<judge>_judge.json", exists=True, dir_okay=False, show_default=False)],
    primary: Annotated[bool, typer.Option("--primary", help="It counts as the run's verdict")] = False,
    as_json: Json = False,
) -> None:
    """Take a verdict that JobBench's harness made as a grading of a run."""
    grading = asyncio.run(_import(run, _read(file), primary))
    if as_json:
        emit(grading)
    else:
        line(f"{grading.id}: {grading.score:g} of {grading.max_score:g}")


async def _export(grading_id: str) -> dict[str, Any]:
    async with AsyncClient() as client:
        return await client.gradings.jobbench(grading_id)


async def _import(run_id: str, result: dict[str, Any], primary: bool) -> Grading:
    async with AsyncClient() as client:
        return await client.gradings.import_jobbench(run_id, result, primary=primary)


def _read(file: Path) -> dict[str, Any]:
    if file.stat().st_size > MOST_BYTES:
        raise fail(f"{file} has more than {MOST_BYTES} bytes")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise fail(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise fail(f"{file} is no JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]

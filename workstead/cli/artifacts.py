"""``workstead artifacts …``: what runs delivered."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from workstead.aio import AsyncClient
from workstead.cli.common import FAILED, USAGE, RunId, emit, fail, in_words, line
from workstead.cli.fetch import Fetched, below, fetch_into, folder_name
from workstead.cli.options import Json
from workstead.cli.watch import note
from workstead.sync import Client
from workstead.terminal import one_line

artifacts_app = typer.Typer(help="Fetch what runs delivered.", no_args_is_help=True)

ArtifactPath = Annotated[str | None, typer.Argument(help="Path as listed", show_default=False)]
Target = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write, or with --all the new folder; default: named after it, here"),
]
All = Annotated[bool, typer.Option("--all", help="Every file, below a folder")]
Zip = Annotated[bool, typer.Option("--zip", help="Every file and a manifest, as one zip")]


@artifacts_app.command("list")
@in_words
def list_artifacts(run_id: RunId, as_json: Json = False) -> None:
    """List the entries of a run's deliverable, those that could not be taken too. With --json one object per line."""
    with Client() as client:
        for a in client.runs.artifacts(run_id):
            emit(a) if as_json else line(f"{a.size_bytes:>12} {one_line(a.kind, 24):<18} {one_line(a.path, 400)}")


@artifacts_app.command("get")
@in_words
def get_artifact(
    run_id: RunId, path: ArtifactPath = None, every: All = False, zipped: Zip = False, output: Target = None
) -> None:
    """Download one file of a run's deliverable, or all of them; never over an existing file.

    Exit code 1 if with --all a file has a name that cannot be written here; the others are written.
    """
    if (path is not None) + every + zipped != 1:
        raise fail("name one path, or --all, or --zip", USAGE)
    if every:
        _get_all(run_id, output or Path(folder_name(run_id)))
        return
    target = output or (Path(f"{folder_name(run_id)}.zip") if path is None else below(Path(), path.rpartition("/")[2]))
    if target.exists():
        raise fail(f"{target} exists")
    with Client() as client:
        size = client.runs.archive(run_id, target) if path is None else client.runs.download(run_id, path, target)
    line(f"{target}: {size} bytes")


def _get_all(run_id: str, folder: Path) -> None:
    if folder.exists():
        raise fail(f"{folder} exists")

    async def work() -> Fetched | None:
        async with AsyncClient() as client:
            return await fetch_into(client, run_id, folder)

    fetched = asyncio.run(work())
    line(f"{folder}: {fetched.files} files" if fetched else "nothing was delivered")
    for said in fetched.skipped if fetched else ():
        note(said)
    if fetched and fetched.skipped:
        raise typer.Exit(FAILED)

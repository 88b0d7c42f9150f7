"""``workstead runs bundle``: everything of a run in one zip."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import RunId, in_words, line
from workstead.sync import Client

Target = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; never over another")]


@in_words
def bundle(run_id: RunId, output: Target = None) -> None:
    """Write events, logs, command lines, configuration, attempts, model requests and gradings into one zip; no secrets."""
    target = output or Path(f"{run_id}.zip")
    with Client() as client:
        names = client.runs.bundle(run_id, target)
    line(f"{target}: {len(names)} files")

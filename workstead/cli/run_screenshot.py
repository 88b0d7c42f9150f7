"""``workstead runs screenshot``: the screen of a run as it is now."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from workstead.cli.common import RunId, fail, in_words, line
from workstead.sync import Client

Target = Annotated[Path, typer.Option("--output", "-o", help="File to write; never over another")]
Format = Annotated[Literal["png", "webp", "jpeg"], typer.Option(help="png and webp are lossless")]
Cursor = Annotated[bool, typer.Option(help="With the mouse pointer")]


@in_words
def screenshot(run_id: RunId, output: Target, format: Format = "png", cursor: Cursor = True) -> None:
    """Save a picture of the run's screen. Nothing is done to the run."""
    with Client() as client:
        data = client.runs.screenshot(run_id, format=format, cursor=cursor)
    try:
        with output.open("xb") as file:
            file.write(data)
    except FileExistsError as error:
        raise fail(f"{output} is there already") from error
    line(f"{output}: {len(data)} bytes")

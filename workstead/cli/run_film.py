"""``workstead runs film``: what happened on a run's screen, as a film."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import FAILED, RunId, fail, in_words, line
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client
from workstead.terminal import one_line

Target = Annotated[Path, typer.Option("--output", "-o", help="File to write (mp4); never over another")]
Fps = Annotated[int, typer.Option(help="Stills a second, one for each batch of actions", min=1, max=10)]
Captions = Annotated[bool, typer.Option(help="With a strip that says what was done")]


@in_words
def film(run_id: RunId, output: Target, fps: Fps = 2, captions: Captions = True) -> None:
    """Have a film made of the pictures in an ended run's record, and save it. Exit code 1 if it could not be made."""
    if output.exists():
        raise fail(f"{output} is there already")
    with Client() as client:
        ended = client.operations.wait(client.runs.make_film(run_id, fps=fps, captions=captions).id, _say)
        if ended.state != "succeeded" or ended.result is None:
            problem = ended.problem or {}
            line(f"{ended.state}: {problem.get('type')}: {one_line(str(problem.get('detail')), 300)}", "red")
            raise typer.Exit(FAILED)
        size = client.runs.film(run_id, output)
    line(f"{output}: {ended.result.get('stills')} stills, {ended.result.get('seconds')} s, {size} bytes")


def _say(operation: Operation) -> None:
    note(operation.state)

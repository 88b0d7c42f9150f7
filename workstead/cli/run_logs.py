"""``workstead runs logs``: what the program in the sandbox wrote, raw, of any attempt, live or afterwards."""

import codecs
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer

from workstead.cli.common import RunId, fail, in_words, line, out
from workstead.cli.run_events import stored
from workstead.errors import Conflict
from workstead.models import Event
from workstead.sync import Client
from workstead.terminal import safe

CHUNK_BYTES = 1 << 15

Stream = Annotated[Literal["stdout", "stderr"], typer.Option(help="Which of the two")]
Number = Annotated[int | None, typer.Option("--attempt", min=1, help="Which attempt; default: the latest")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on as it is written")]
Target = Annotated[Path | None, typer.Option("--output", "-o", help="File to write, byte for byte; never over another")]


@in_words
def logs(
    run_id: RunId, stream: Stream = "stdout", attempt: Number = None, follow: Follow = False, output: Target = None
) -> None:
    """Print what the program wrote, made safe for terminals; -o keeps every byte (once the attempt has ended)."""
    with Client() as client:
        run = client.runs.get(run_id)
        number = attempt or run.attempt
        if not number:
            raise fail(f"{run_id} has not started yet ({run.phase})")
        if output is not None:
            line(f"{output}: {client.runs.log(run_id, number, stream, output)} bytes")
            return
        try:
            pieces = _sealed(client, run_id, number, stream)
        except Conflict as problem:
            if problem.type != "log_not_sealed":
                raise
            pieces = _live(client, run_id, number, stream, follow)
        for piece in pieces:
            out.file.write(piece)
            out.file.flush()


def _sealed(client: Client, run_id: str, number: int, stream: str) -> Iterator[str]:
    """Fetch the raw log and return it in safe pieces. Raises Conflict while there is none."""
    with tempfile.TemporaryDirectory(prefix="workstead-log-") as folder:
        path = Path(folder) / "log"
        client.runs.log(run_id, number, stream, path)
        return _pieces(path.open("rb"))


def _pieces(file: BinaryIO) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield safe(decoder.decode(chunk))
    yield safe(decoder.decode(b"", final=True))


def _live(client: Client, run_id: str, number: int, stream: str, follow: bool) -> Iterator[str]:
    """Yield what the events hold so far, or as they come until the attempt's stream is closed."""
    types = ["output", "output.closed", "attempt.ended"]
    events = client.runs.events(run_id, types=types) if follow else stored(client, run_id, 0, types)
    for event in events:
        if event.attempt > number or _closes(event, number, stream):
            return
        if event.type == "output" and event.attempt == number and event.payload.get("stream") == stream:
            yield safe(str(event.payload.get("text", "")))


def _closes(event: Event, number: int, stream: str) -> bool:
    return event.type == "output.closed" and event.attempt == number and event.payload.get("stream") == stream

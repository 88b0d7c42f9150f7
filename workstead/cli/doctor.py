"""``workstead doctor``: what this machine offers, in words."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from workstead.cli.common import FAILED, emit, in_words, out
from workstead.cli.engine import Engine, EngineAway
from workstead.cli.examination.engine import examine_access, examine_engine, examine_images
from workstead.cli.examination.finding import Finding
from workstead.cli.examination.machine import examine_machine, examine_port
from workstead.cli.examination.running import examine_service, examine_waiting, try_out
from workstead.cli.options import Json
from workstead.cli.service_process import environment
from workstead.config import default_data_dir
from workstead.terminal import one_line

DataDir = Annotated[Path | None, typer.Option(help="Data directory of the service")]
SelfTest = Annotated[
    bool, typer.Option(help="Make a sandbox with each runtime and try it; look at the database (some seconds)")
]
STYLES = {"ok": "green", "note": "yellow", "missing": "red"}


@in_words
def doctor(data_dir: DataDir = None, self_test: SelfTest = True, as_json: Json = False) -> None:
    """Check what the service needs on this machine: ok, note (works with a restriction) or missing, and what to do.

    Exit code 1 if something is missing. With --json one object per finding and line: what, state, said.
    """
    missing = False
    for f in examine(Engine, data_dir or default_data_dir(), self_test=self_test):
        missing = missing or f.ok is False
        if as_json:
            emit({"what": f.what, "state": f.state, "said": f.said})
        else:
            text = Text(f"{f.state:<8}", style=STYLES[f.state])
            out.print(text.append(f"{f.what:<22} {one_line(f.said, 400)}", style="default"))
    raise typer.Exit(FAILED if missing else 0)


def examine(engine: Callable[[], Engine], data_dir: Path, *, self_test: bool = True) -> Iterator[Finding]:
    """Yield what was found, the engine first."""
    engine_root = None
    try:
        with engine() as there:
            yield from examine_access(there)
            info = there.get("/info")
            engine_root = info.get("DockerRootDir")
            yield from examine_engine(info, there.get("/version"))
            yield examine_images(there.images())
    except EngineAway as error:
        yield Finding("engine", False, f"{error} (`make engine` installs and starts one)")
    yield from examine_machine(data_dir, engine_root, os.environ)
    service, url = examine_service(data_dir)
    yield service
    if url is not None:
        yield from examine_waiting(data_dir)
    yield examine_port(os.environ, url)
    if self_test:
        yield from try_out(environment(data_dir, None))

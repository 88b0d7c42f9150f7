"""``workstead serve``: the service on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import in_words
from workstead.cli.service_process import environment, replace_by_service

DataDir = Annotated[Path | None, typer.Option(help="Data directory; default /var/lib/workstead for root")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the API; 0 takes a free one")]


@in_words
def serve(data_dir: DataDir = None, port: Port = None) -> None:
    """Run the whole service on this machine: API, gateway, worker, grader and, without a database URL, PostgreSQL."""
    replace_by_service(["serve"], environment(data_dir, port))


@in_words
def scripted_provider(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1")] = 8765,
    scenario: Annotated[str, typer.Option(help="For keys other than sk-scripted-<scenario>")] = "success",
    scenarios: Annotated[Path | None, typer.Option(help="TOML file with tables [[scenario]]")] = None,
) -> None:
    """Run a model provider that follows a script: for tests of scaffolds, without a key or a bill."""
    file = ["--scenarios", str(scenarios)] if scenarios is not None else []
    arguments = ["scripted-provider", "--port", str(port), "--scenario", scenario, *file]
    replace_by_service(arguments, environment(None, None))

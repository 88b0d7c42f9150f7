"""``workstead tasks …``: add, check, list, facts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from workstead.cli.common import FAILED, emit, fail, in_words, labels_of, line, out
from workstead.cli.options import Json, Limit
from workstead.cli.selection import task_directories
from workstead.cli.tables import plain_table
from workstead.cli.task_facts import facts_app
from workstead.errors import Problem
from workstead.named_paths import missing_paths
from workstead.sync import Client
from workstead.task_dir import Bundle, InvalidInput, read_task_dir
from workstead.task_model import manifest_problems

tasks_app = typer.Typer(help="Tasks: add directories, check them, list.", no_args_is_help=True)
tasks_app.add_typer(facts_app, name="facts")

Directories = Annotated[
    list[Path], typer.Argument(help="Task directories, or folders of them", show_default=False, metavar="DIR...")
]
Name = Annotated[str | None, typer.Option(help="Only tasks of this name")]
Facet = Annotated[list[str] | None, typer.Option("--facet", help="KEY=VALUE that the tasks bear; repeatable")]


@tasks_app.command("add")
@in_words
def add_tasks(directories: Directories, as_json: Json = False) -> None:
    """Bring task directories to the service; only files that it misses travel. Adding a task again finds it.

    Exit code 1 if any could not be added; the others are.
    """
    failed = 0
    with Client() as client:
        for path, bundle, problems in _read(directories):
            try:
                if bundle is None:
                    raise InvalidInput(path, problems)
                task = client.tasks.create(bundle)
            except (InvalidInput, Problem) as error:
                failed += 1
                fail(f"{path}: {error}" if isinstance(error, Problem) else str(error))
                continue
            if as_json:
                emit(task)
            else:
                line(f"{task.id} {task.name} {task.digest}")
    if failed:
        raise fail(f"{failed} could not be added", FAILED)


@tasks_app.command("check")
@in_words
def check_tasks(directories: Directories, as_json: Json = False) -> None:
    """Check task directories without a service: names, types, bounds, files. Exit code 1 if any is not usable."""
    bad, rows = 0, list[tuple[str, str, str]]()
    for path, bundle, problems in _read(directories):
        remarks = (
            [] if bundle is None else [f"/workspace/{name} is not there" for name in missing_paths(bundle.manifest)]
        )
        bad += bool(problems)
        if as_json:
            emit({"directory": str(path), "ok": not problems, "problems": problems, "remarks": remarks})
        state = "broken" if problems else "suspect" if remarks else "ok"
        rows += [(str(path), state, said) for said in (*problems, *remarks)] or [(str(path), state, "")]
    if not as_json:
        out.print(plain_table(("directory", "state", "what"), rows))
    if bad:
        raise typer.Exit(FAILED)


def _read(directories: Sequence[Path]) -> Iterator[tuple[Path, Bundle | None, list[str]]]:
    """Yield each task directory with its bundle, or with what is wrong with it."""
    for path in (found for folder in directories for found in task_directories(folder)):
        try:
            bundle = read_task_dir(path)
        except InvalidInput as error:
            yield path, None, error.problems
            continue
        problems = manifest_problems(bundle.manifest)
        yield path, None if problems else bundle, problems


@tasks_app.command("list")
@in_words
def list_tasks(name: Name = None, facet: Facet = None, limit: Limit = 50, as_json: Json = False) -> None:
    """List the project's tasks, oldest first."""
    filters = {**({} if name is None else {"name": name}), **{f"facet.{k}": v for k, v in labels_of(facet).items()}}
    with Client() as client:
        found = list(client.tasks.list(filters, limit=limit))
    if as_json:
        for task in found:
            emit(task)
    else:
        out.print(plain_table(("task", "name", "digest"), [(t.id, t.name, t.digest) for t in found]))

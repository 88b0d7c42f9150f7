"""What every command shares: the terminal, the client, and errors in words."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar

import httpx
import typer
from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from workstead.errors import WorksteadError
from workstead.terminal import one_line, safe

P = ParamSpec("P")
T = TypeVar("T")

PIPE_COLUMNS = 160
"""Width of tables where no terminal says its own."""


def _width() -> int | None:
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPE_COLUMNS


out = Console(highlight=False, soft_wrap=True, width=_width())
err = Console(highlight=False, soft_wrap=True, stderr=True)

GRADED, FAILED, USAGE, UNGRADED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes; 2 is typer's own for wrong usage."""
PIPE_CLOSED = 141
"""As a shell shows a program that SIGPIPE ended."""

RunId = Annotated[str, typer.Argument(help="Run, run_…", show_default=False)]


def line(text: str, style: str = "") -> None:
    """Print text that may come from anywhere."""
    out.print(Text(safe(text), style=style))


def emit(item: BaseModel | Mapping[str, Any]) -> None:
    """Print one JSON object on a line of its own; ASCII only, so that no text in it can steer a terminal."""
    body = item.model_dump(mode="json") if isinstance(item, BaseModel) else item
    out.file.write(json.dumps(body, ensure_ascii=True, default=str) + "\n")


def facts(rows: Mapping[str, object]) -> None:
    """Print names and values, one a line; an empty value is left out."""
    for key, value in rows.items():
        if value not in (None, ""):
            out.print(Text(f"{key:<24}", style="dim").append(one_line(str(value), 400), style="default"))


def fail(text: str, code: int = FAILED) -> typer.Exit:
    """Print why on standard error and return the exit to raise."""
    err.print(Text(safe(text), style="red"))
    return typer.Exit(code)


def in_words(command: Callable[P, T]) -> Callable[P, T]:
    """Turn the errors that a user can act on into one message and exit code 1."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (WorksteadError, httpx.HTTPError) as error:
            raise fail(str(error) or type(error).__name__) from error
        except BrokenPipeError:
            # Whoever read (head, less) has enough; the interpreter's own flush at the end must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        except OSError as error:
            raise fail(f"{error.filename or ''} {error.strerror or error}".strip()) from error
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            raise fail("interrupted", INTERRUPTED) from None

    return wrapped


def labels_of(pairs: list[str] | None) -> dict[str, str]:
    """Parse ``KEY=VALUE`` options. Raises typer.BadParameter."""
    labels: dict[str, str] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
        labels[key] = value
    return labels

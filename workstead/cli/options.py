"""Options that several commands take."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON for machines on standard output")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Most of them")]
Phase = Annotated[list[str] | None, typer.Option("--phase", help="Only runs in this phase; repeatable")]
Outcome = Annotated[list[str] | None, typer.Option("--outcome", help="Only runs with this outcome; repeatable")]
OfAgent = Annotated[list[str] | None, typer.Option("--agent", "-a", help="Only runs of this agent (label or id)")]
OfTask = Annotated[list[str] | None, typer.Option("--task", help="Only runs of this task (name or id)")]
LabelIs = Annotated[list[str] | None, typer.Option("--label", help="KEY=VALUE that the runs bear; repeatable")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="Any filter of the API as KEY=VALUE: ended_because, flag, facet.NAME, model, scaffold, created_after, "
        "created_before, updated_after, ids, sort; repeatable",
    ),
]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def pairs(given: Sequence[str] | None) -> list[tuple[str, str]]:
    """Parse ``KEY=VALUE`` options. Raises typer.BadParameter."""
    found: list[tuple[str, str]] = []
    for pair in given or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
        found.append((key, value))
    return found


def grouped(given: Sequence[tuple[str, str]]) -> Mapping[str, str | list[str]]:
    """Return a query: a key given several times has all its values."""
    query: dict[str, str | list[str]] = {}
    for key, value in given:
        before = query.get(key)
        query[key] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return query


def duration(text: str) -> timedelta:
    """Parse ``90s``, ``15m``, ``12h`` or ``30d``. Raises typer.BadParameter."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration such as 15m, 12h or 30d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])

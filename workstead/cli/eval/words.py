"""What an evaluation is to be, from options and files."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import typer
import yaml

from workstead.cli.options import pairs

MOST_BYTES = 8 << 20
FILES = (".yaml", ".yml", ".json")
_YAML_1_1 = frozenset({"tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int"})
_CORE = (
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), "-+0123456789"),
)


class SpecLoader(yaml.SafeLoader):
    """Plain data as YAML 1.2 has it: ``no`` and ``12:30`` are text; a key that comes twice is an error, not the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} is said twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return by first character which plain words are no text."""
    kept = {
        first: [(tag, pattern) for tag, pattern in found if tag not in _YAML_1_1]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for tag, pattern, firsts in _CORE:
        for first in firsts:
            kept.setdefault(first, []).insert(0, (tag, pattern))
    return kept


SpecLoader.yaml_implicit_resolvers = _resolvers()


def read_spec(path: Path) -> dict[str, Any]:
    """Return the evaluation that a YAML or JSON file describes. Raises typer.BadParameter, OSError."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise typer.BadParameter(f"{path} has more than {MOST_BYTES} bytes")
    try:
        found: Any = json.loads(data) if path.suffix == ".json" else yaml.load(data, SpecLoader)  # noqa: S506 - a safe loader
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise typer.BadParameter(f"{path}: {str(error).replace(chr(10), ' ')[:500]}") from error
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{path} is no mapping of an evaluation's fields (docs/evaluations.md)")
    return cast("dict[str, Any]", found)


def agent_choice(word: str) -> dict[str, Any]:
    """Return what ``SCAFFOLD:MODEL@EFFORT`` means; a word without a colon is an agent that exists, by label or id.

    The model may be left out (``demo-solver@1:``), and so may version and effort. Raises typer.BadParameter.
    """
    scaffold, colon, rest = word.partition(":")
    if not colon:
        return {"agent": word}
    if not scaffold:
        raise typer.BadParameter(f"{word!r}: name the scaffold before the colon")
    model, at, effort = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if at and not (model and effort):
        raise typer.BadParameter(f"{word!r} is not SCAFFOLD:MODEL@EFFORT")
    choice: dict[str, Any] = {"scaffold": scaffold}
    if model:
        choice["model"] = model
    if effort:
        choice["settings"] = {"effort": effort}
    return choice


def facets_of(given: Sequence[str] | None) -> dict[str, list[str]]:
    """Return ``KEY=VALUE`` options as facet → values."""
    found: dict[str, list[str]] = {}
    for key, value in pairs(given):
        found.setdefault(key, []).append(value)
    return found


def named(benchmark: str) -> str:
    """Return a name for an evaluation that was given none."""
    return f"{benchmark} {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"


def setting(key: str, text: str) -> Any:
    """Return the value that ``text`` is as JSON, else the text: ``true``, ``3``, ``null``, ``[1, 2]`` or words.

    Dollars stay text, for they are decimals.
    """
    if key.endswith("_usd"):
        return None if text in ("", "none", "null") else text
    try:
        return json.loads(text)
    except ValueError:
        return text


SECTIONS = ("budget", "stop_rules", "concurrency", "labels")


def changes(given: Sequence[str], now: dict[str, Any]) -> dict[str, Any]:
    """Return the body that changes what ``KEY=VALUE`` words say: ``priority=5``, ``budget.agents_usd=20``,
    ``concurrency.models.NAME=4``, ``stop_rules.enabled=false``, ``labels.team=blue``, ``name=…``, ``notes=…``.

    ``now``: the sections as they are. An empty value takes a member away. Raises typer.BadParameter.
    """
    body: dict[str, Any] = {}
    for key, text in pairs(given):
        head, dot, rest = key.partition(".")
        if head not in SECTIONS:
            if dot or head not in ("name", "notes", "priority"):
                raise typer.BadParameter(f"{key!r}: set name, notes, priority, or {', '.join(SECTIONS)} with a dot")
            body[head] = setting(head, text) if head == "priority" else text
            continue
        if not rest:
            raise typer.BadParameter(f"{key!r}: say which member, as {head}.MEMBER=VALUE")
        section = body.setdefault(head, json.loads(json.dumps(now.get(head) or {})))
        _put(section, head, rest, text)
    return body


def _put(section: dict[str, Any], head: str, rest: str, text: str) -> None:
    # Models and labels may have dots in their names: only the second word of concurrency is a member of its own.
    member, dot, name = rest.partition(".") if head == "concurrency" else (rest, "", "")
    place: dict[str, Any] = section.setdefault(member, {}) if dot else section
    last = name if dot else member
    if text == "" and (head == "labels" or dot):
        place.pop(last, None)
    elif head == "labels":
        place[last] = text
    else:
        place[last] = None if text == "" else setting(last, text)

"""Files with people's findings about items: which are disputed, which rules may be told, which programs solve them."""

import re
from pathlib import Path
from typing import Any, cast

from workstead.importers.untrusted import read_json, unstorable
from workstead.task_dir import InvalidInput

MAX_BYTES = 64 << 20
MAX_PROGRAM_BYTES = 1 << 20
_FILE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


def read_disputed(path: Path | None) -> dict[str, str]:
    """Read ids with reasons: an object, id → reason, or a list of ids. Raises InvalidInput, OSError."""
    if path is None:
        return {}
    value: Any = read_json(path, MAX_BYTES)
    if isinstance(value, list):
        return {str(id): "" for id in cast("list[Any]", value)}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in cast("dict[str, Any]", value).values()):
        raise InvalidInput(path, ["must be an object, id → reason, or a list of ids"])
    return cast("dict[str, str]", value)


def read_rules(path: Path | None) -> dict[str, dict[str, str]]:
    """Read reviewed rules: an object, item id → question id → rule. Raises InvalidInput, OSError."""
    if path is None:
        return {}
    value: Any = read_json(path, MAX_BYTES)
    if not _is_rules(value):
        raise InvalidInput(path, ["must be an object: item id → question id → rule, a text that is not empty"])
    return cast("dict[str, dict[str, str]]", value)


def _is_rules(value: Any) -> bool:
    if not isinstance(value, dict) or unstorable(value):
        return False
    items = cast("dict[str, Any]", value).values()
    return all(isinstance(rules, dict) and _are_texts(cast("dict[str, Any]", rules)) for rules in items)


def _are_texts(rules: dict[str, Any]) -> bool:
    return all(isinstance(rule, str) and rule.strip() for rule in rules.values())


def read_solution(folder: Path | None, item_id: str, suffix: str) -> bytes | None:
    """Return the program that solves an item, ``<id><suffix>`` in ``folder``; None where there is none. Raises OSError."""
    if folder is None or not _FILE_ID.match(item_id):
        return None
    path = folder / f"{item_id}{suffix}"
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_PROGRAM_BYTES:
        return None
    return path.read_bytes()

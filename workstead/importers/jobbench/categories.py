"""The category of each occupation, where the user brings it, and the columns of the table made of categories."""

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from workstead.importers.untrusted import read_json, unstorable
from workstead.task_dir import InvalidInput

OTHERS = ("sales", "legal", "life", "education")
"""How the names of the categories begin that the published table takes together."""
_MAPPING = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))
MAX_BYTES = 1 << 20


def read_categories(path: Path | None) -> dict[str, str]:
    """Read a JSON object, occupation → category. Raises InvalidInput, OSError."""
    if path is None:
        return {}
    try:
        mapping = _MAPPING.validate_python(read_json(path, MAX_BYTES))
    except ValidationError as error:
        raise InvalidInput(path, ["must be an object: occupation → category"]) from error
    if unstorable(mapping):
        raise InvalidInput(path, ["a text has a NUL or a lone surrogate"])
    return mapping


def groupings(mapping: dict[str, str]) -> list[dict[str, Any]]:
    """Return the table's columns: one per category, those of OTHERS merged; none without a mapping."""
    merged = sorted({c for c in mapping.values() if c.lower().startswith(OTHERS)})
    merges: dict[str, list[str]] = {"Others": merged} if merged else {}
    none: dict[str, list[str]] = {}
    category = [{"name": "category", "facet": "category", "merges": merges}] if mapping else []
    return [*category, {"name": "occupation", "facet": "occupation", "merges": none}]

"""A scaffold manifest as a TOML or JSON file; ``files`` may name local sources instead of digests."""

import json
import tomllib
from pathlib import Path
from typing import Any, cast

from workstead.task_dir import Bundle, InvalidInput, file_ref, read_text


def read_scaffold_file(path: Path) -> Bundle:
    """Read a manifest. An entry ``{path, source}`` of ``files`` is the file ``source`` beside the manifest.

    Raises InvalidInput.
    """
    problems: list[str] = []
    text = read_text(path, path.name, problems)
    manifest = _parse(path, text or "", problems)
    files: dict[str, Path] = {}
    entries = manifest.get("files", [])
    if isinstance(entries, list) and not problems:
        refs = cast("list[Any]", entries)
        manifest["files"] = [_resolve(path.parent, entry, files, problems) for entry in refs]
    if problems:
        raise InvalidInput(path, problems)
    return Bundle(manifest, files)


def _parse(path: Path, text: str, problems: list[str]) -> dict[str, Any]:
    try:
        value: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(str(error))
        return {}
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    problems.append("is not an object")
    return {}


def _resolve(folder: Path, entry: Any, files: dict[str, Path], problems: list[str]) -> Any:
    if not isinstance(entry, dict) or "source" not in entry:
        return cast("Any", entry)
    given = cast("dict[str, Any]", entry)
    source = folder / str(given["source"])
    try:
        return file_ref(source, str(given.get("path", source.name)), files)
    except OSError as error:
        problems.append(f"files: {given['source']}: {error.strerror}")
        return given

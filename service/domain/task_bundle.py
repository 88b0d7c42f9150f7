"""A task directory as files: which of them make a task, and the manifest that they make.

The same rules as those of the client for a directory on disk (``workstead.task_dir``); a test feeds both the same.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any, cast

from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest

TASK_FILE, INSTRUCTION_FILE = "task.toml", "instruction.md"
FOLDERS = ("visible", "hidden")
FIELDS = frozenset(TaskManifest.model_fields) - set(FOLDERS)
"""What ``task.toml`` may say."""
MAX_TEXT_BYTES = 800_000
_MAX_KEY_PARTS = 32
# The parser needs time by the square of a dotted key's parts.
_LONG_KEY = re.compile(
    rf"""(?:(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"""
)


def top_folder(paths: Iterable[str]) -> str:
    """Return what precedes the task's files: nothing, or the one folder that holds everything, with its slash."""
    tops: set[str] = set()
    for path in paths:
        if path == TASK_FILE:
            return ""
        tops.add(path.partition("/")[0])
    return f"{tops.pop()}/" if len(tops) == 1 else ""


def files_below(paths: Iterable[str], folder: str) -> list[tuple[str, str]]:
    """Return (path below ``folder``, path) of the files there, in the order of a walk by names."""
    found = [(path.removeprefix(f"{folder}/"), path) for path in paths if path.startswith(f"{folder}/")]
    return sorted(found, key=lambda pair: pair[0].split("/"))


def manifest_json(task_toml: bytes | None, instruction_md: bytes | None, folders: Mapping[str, Any]) -> bytes:
    """Return the manifest as the JSON that a client would send; ``folders`` are its file lists.

    Raises Invalid("invalid_task_bundle") with ``errors``, one per thing that is wrong. Whether the manifest itself
    is valid is for whoever parses it.
    """
    problems: list[tuple[str, str]] = []
    manifest = _read_toml(task_toml, problems)
    _read_instruction(manifest, instruction_md, problems)
    if problems:
        raise refused(problems)
    return json.dumps({**manifest, **folders}).encode()


def refused(problems: Iterable[tuple[str, str]]) -> Invalid:
    errors = [{"pointer": f"#/{file}", "type": "invalid", "detail": detail} for file, detail in problems]
    said = "; ".join(f"{e['pointer'][2:]}: {e['detail']}" for e in errors)
    return Invalid("invalid_task_bundle", said, errors=errors)


def _read_toml(data: bytes | None, problems: list[tuple[str, str]]) -> dict[str, Any]:
    text = _text(TASK_FILE, data, problems)
    if text is None:
        return {}
    if _LONG_KEY.search(text):
        problems.append((TASK_FILE, f"a key has {_MAX_KEY_PARTS} parts or more"))
        return {}
    try:
        manifest = _json_values(tomllib.loads(text), problems)
    except tomllib.TOMLDecodeError as error:
        problems.append((TASK_FILE, str(error)[:500]))
        return {}
    except RecursionError:
        problems.append((TASK_FILE, "is nested too deep"))
        return {}
    problems.extend((TASK_FILE, f"unknown field {name[:100]!r}") for name in sorted(set(manifest) - FIELDS)[:20])
    if not isinstance(manifest.get("name"), str):
        problems.append((TASK_FILE, "name is missing (a string)"))
    return manifest


def _read_instruction(manifest: dict[str, Any], data: bytes | None, problems: list[tuple[str, str]]) -> None:
    if "instruction" in manifest:
        if data is not None:
            problems.append((INSTRUCTION_FILE, "task.toml has an instruction already"))
        return
    text = _text(INSTRUCTION_FILE, data, problems)
    if text is not None:
        manifest["instruction"] = text
        if not text.strip():
            problems.append((INSTRUCTION_FILE, "is empty"))


def _text(name: str, data: bytes | None, problems: list[tuple[str, str]]) -> str | None:
    if data is None:
        problems.append((name, "No such file or directory"))
        return None
    if len(data) > MAX_TEXT_BYTES:
        problems.append((name, f"is longer than {MAX_TEXT_BYTES} bytes"))
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        problems.append((name, "is not UTF-8"))
        return None


def _json_values(value: Any, problems: list[tuple[str, str]]) -> Any:
    """Return ``value`` with days and times as text; JSON has neither them nor numbers without end."""
    if isinstance(value, dict):
        return {key: _json_values(item, problems) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_json_values(item, problems) for item in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        problems.append((TASK_FILE, f"{value} is not a number that can be sent"))
    return value.isoformat() if isinstance(value, date | time) else value

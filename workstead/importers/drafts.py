"""An item while it is being read, with everything that was found wrong with it."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workstead.importers.untrusted import storable, unstorable

MAX_PROBLEMS = 100
MAX_TEXT = 2_000
MAX_KEY = 256
MAX_INSTRUCTION = 200_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}\Z")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_RANK = {"ok": 0, "disputed": 1, "quarantined": 2}


@dataclass(slots=True)
class Draft:
    """One item. Its status is that of the worst thing said about it."""

    key: str
    task: dict[str, Any] | None = None
    status: str = "ok"
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def note(self, type: str, where: str = "", detail: str = "") -> None:
        """Remark something that leaves the item usable."""
        self._say("ok", type, where, detail)

    def dispute(self, type: str, where: str = "", detail: str = "") -> None:
        self._say("disputed", type, where, detail)

    def quarantine(self, type: str, where: str = "", detail: str = "") -> None:
        self._say("quarantined", type, where, detail)

    def _say(self, status: str, type: str, where: str, detail: str) -> None:
        self.status = max(self.status, status, key=_RANK.__getitem__)
        if len(self.problems) < MAX_PROBLEMS:
            problem = {"type": type, "where": storable(where, MAX_TEXT), "detail": storable(detail, MAX_TEXT)}
            self.problems.append(problem)
            if len(self.problems) == MAX_PROBLEMS:
                problem.update(type="more_problems", detail="and more, which are not listed")

    def item(self) -> dict[str, Any]:
        """Return the item of the manifest; a task that the service would refuse is left out, and said so."""
        if self.task is not None and (trouble := refused(self.task)):
            self.task = None
            self.quarantine("unusable_task", "", trouble)
        if self.task is None and self.status != "quarantined":
            self.quarantine("no_task")
        return {"key": self.key, "task": self.task, "status": self.status, "problems": self.problems}


def refused(task: Mapping[str, Any]) -> str | None:
    """Say why the service would refuse a task that an importer made, as far as the source can be the reason."""
    instruction = str(task["instruction"])
    if unstorable(task):
        return "a text has a NUL or a lone surrogate"
    if not _NAME.match(str(task["name"])):
        return f"the name {task['name']!r} is not one of 1 to 128 letters, digits and ._/-"
    if not 0 < len(instruction) <= MAX_INSTRUCTION:
        return f"the instruction has {len(instruction)} characters; 1 to {MAX_INSTRUCTION} are allowed"
    return None


def unique_keys(drafts: Iterable[Draft]) -> list[Draft]:
    """Give each draft a key of its own; a second item of the same key is quarantined as ``duplicate_id``."""
    kept, seen = list(drafts), set[str]()
    for draft in kept:
        base = key_text(draft.key)
        key, number = base, 1
        while key in seen:
            number += 1
            key = f"{base[: MAX_KEY - 8]}~{number}"
        if number > 1:
            draft.quarantine("duplicate_id", "", f"an item before this one has the id {base!r}")
        draft.key = key
        seen.add(key)
    return kept


def key_text(text: str) -> str:
    """Return ``text`` as a key: no control character, at most 240 characters, not empty."""
    return _CONTROLS.sub("\ufffd", text)[: MAX_KEY - 16] or "unnamed"


def slug(text: str, limit: int = 64) -> str:
    """Return ``text`` as a part of a name: letters, digits, dot, underscore and hyphen; another text gives another one."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:limit]
    if kept == text:
        return kept
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept}-{digest}" if kept else digest

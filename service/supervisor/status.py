"""``<data>/supervisor.json``: which processes run, for ``doctor`` and tests."""

import json
import os
import time
from pathlib import Path
from typing import Any, TypedDict, cast

from service.supervisor import proc
from service.supervisor.locks import write_whole

FILE_NAME = "supervisor.json"


class ChildStatus(TypedDict):
    pid: int | None
    """``None`` while it waits to be started again."""
    restarts: int
    last_exit: int | None
    """Exit code; negative: the signal that ended it."""


class Status(TypedDict):
    pid: int
    start_time: float
    """Unix seconds."""
    start_ticks: int
    boot_id: str
    state: str
    """``starting``, ``ready`` or ``stopping``."""
    children: dict[str, ChildStatus]


class StatusFile:
    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE_NAME
        self._start_time = time.time()
        self.state = "starting"
        self.children: dict[str, ChildStatus] = {}

    def write(self) -> None:
        """Replace the file as a whole. Raises OSError (disk full), which must not end a supervisor."""
        status: dict[str, Any] = {
            **(proc.identity(os.getpid()) or {}),
            "start_time": self._start_time,
            "state": self.state,
            "children": self.children,
        }
        write_whole(self._path, json.dumps(status, indent=2).encode(), mode=0o644)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def read_status(data_dir: Path) -> Status | None:
    """Return what the supervisor of ``data_dir`` last wrote; ``None`` when there is none or it has ended."""
    try:
        status = cast("Status", json.loads((data_dir / FILE_NAME).read_text()))
    except (FileNotFoundError, ValueError):
        return None
    mine = {key: status[key] for key in ("pid", "start_ticks", "boot_id")}
    return status if proc.identity(status["pid"]) == mine else None

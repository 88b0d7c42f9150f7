"""Mounts that this worker makes for collection, and the ones that a crashed worker left."""

import re
import time
from pathlib import Path

from service.sandboxes.contract import EngineError
from service.sandboxes.docker.tools import run_tool

BUSY_WAIT_S = 10.0
"""How long the engine may take to unmount a dead container's workspace."""
_ESCAPE = re.compile(r"\\([0-7]{3})")


def mount_read_only(device: str, target: Path) -> None:
    """Mount an ext4 device read-only; wait while the engine still holds it writable. Raises EngineError."""
    argv = ["mount", "-t", "ext4", "-o", "ro,nosuid,nodev,noexec", device, str(target)]
    give_up = time.monotonic() + BUSY_WAIT_S
    while True:
        try:
            run_tool(argv)
            return
        except EngineError as error:
            if "busy" not in str(error) or time.monotonic() > give_up:
                raise
        time.sleep(0.02)  # noqa: TID251 - blocking by design: runs in a worker thread


def mounts_below(path: Path) -> list[Path]:
    """Return mount points of this mount namespace at or below ``path``, innermost first."""
    found: list[Path] = []
    with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            point = Path(_ESCAPE.sub(lambda m: chr(int(m[1], 8)), line.split(" ", 5)[4]))
            if point == path or path in point.parents:
                found.append(point)
    return found[::-1]


def unmount_below(path: Path) -> None:
    """Unmount everything at or below ``path``; idempotent. A busy one is detached: it ends with its last user."""
    for point in mounts_below(path):
        try:
            run_tool(["umount", str(point)])
        except EngineError as error:
            if "busy" not in str(error):
                raise
            run_tool(["umount", "--lazy", str(point)])

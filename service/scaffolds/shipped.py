"""The scaffolds that come with the service: an agent may name them in any project without registering them.

A row is one tested version. A new version is a new row; an old one stays as long as its kit can be built.
"""

import re
from collections.abc import Iterable

from service.domain.agents import ScaffoldManifest, Surface
from service.domain.desktop import NEEDS
from service.domain.limits import GIB, MIB, Limits

LATEST = "latest"
_PIECE = re.compile(r"\d+|[^\d.+-]+")


def _least(memory_bytes: int, pids: int = 128, disk_bytes: int = 256 * MIB, cpus: float = 0.5) -> Limits:
    """Only what the program itself needs: the task's limits stand wherever they are larger."""
    return Limits(
        memory_bytes=memory_bytes, cpus=cpus, pids=pids, disk_bytes=disk_bytes, inodes=10_000, shm_bytes=MIB
    )  # fmt: skip


SHIPPED = (
    ScaffoldManifest(
        name="claude-code", version="2.1.332", kind="claude_code", kit="kits/claude_code", minimum=_least(GIB)
    ),
    ScaffoldManifest(name="codex", version="0.171.0", kind="codex", kit="kits/codex", minimum=_least(GIB)),
    ScaffoldManifest(
        name="gemini-cli", version="0.61.0", kind="gemini_cli", kit="kits/gemini_cli", minimum=_least(2 * GIB)
    ),
    ScaffoldManifest(name="opencode", version="1.18.33", kind="opencode", kit="kits/opencode", minimum=_least(2 * GIB)),
    ScaffoldManifest(
        name="openclaw", version="2026.9.6", kind="openclaw", kit="kits/openclaw", minimum=_least(3 * GIB, 256)
    ),
    ScaffoldManifest(name="openhands", version="1.58.2", kind="openhands", kit="kits/openhands", minimum=_least(GIB)),
    ScaffoldManifest(name="mini-swe-agent", version="2.4.6", kind="mini_swe", kit="kits/mini_swe", minimum=_least(GIB)),
    ScaffoldManifest(name="tool-agent", version="1", kind="tool_agent", minimum=_least(256 * MIB)),
    ScaffoldManifest(name="computer-use", version="1", kind="computer_use", surface=Surface.DESKTOP, minimum=NEEDS),
    ScaffoldManifest(name="single-response", version="1", kind="single_response", minimum=_least(256 * MIB)),
    ScaffoldManifest(name="remote", version="1", kind="remote"),
    ScaffoldManifest(name="external", version="1", kind="external"),
    ScaffoldManifest(name="person", version="1", kind="person"),
)


def find(reference: str) -> ScaffoldManifest | None:
    """Return the shipped scaffold ``name@version``, of ``name@latest`` the newest; null: none is shipped so."""
    name, _, version = reference.rpartition("@")
    rows = {row.version: row for row in SHIPPED if row.name == name}
    return rows.get(newest(rows) or "" if version == LATEST else version)


def newest(versions: Iterable[str]) -> str | None:
    """Return the greatest version: numbers by value, a number after a word."""
    return max(versions, key=_key, default=None)


def _key(version: str) -> list[tuple[int, int, str]]:
    # A word comes before the end, and the end before a number: 1.0-rc1, 1.0, 1.0.1.
    pieces = [(2, int(p), "") if p.isdecimal() else (0, 0, p) for p in _PIECE.findall(version)]
    return [*pieces, (1, 0, "")]

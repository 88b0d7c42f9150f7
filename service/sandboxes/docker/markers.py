"""What tells that the engine or the host restarted: the host's boot, the engine's identity, its process.

The process is found through the socket that answers (SO_PEERCRED), or through the pid file where systemd holds the
socket; a pid counts together with its start time. Over TCP only boot and identity remain.
"""

import os
import socket
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
DAEMON = "dockerd"
"""Another name at the socket is systemd or a proxy: its restart is not the engine's."""
PID_FILES = (Path("/run/docker.pid"), Path("/var/run/docker.pid"))


@dataclass(frozen=True, slots=True)
class EngineMarkers:
    boot_id: str
    engine_id: str
    process: str | None
    """``<pid>:<start ticks>`` of the engine's daemon, where this machine can see it."""
    started_at: float | None
    """Unix seconds of the daemon's start, where known."""

    def restarted_since(self, earlier: "EngineMarkers") -> bool:
        """Tell whether host or engine restarted between ``earlier`` and now; an unknown process says nothing."""
        if (self.boot_id, self.engine_id) != (earlier.boot_id, earlier.engine_id):
            return True
        known = self.process is not None and earlier.process is not None
        return known and self.process != earlier.process

    def to_json(self) -> dict[str, str | float | None]:
        return asdict(self)


def read_markers(url: str, engine_id: str) -> EngineMarkers:
    """Read the markers of the engine behind ``url`` now. Blocking, short."""
    pid = _daemon_pid(url)
    ticks = _start_ticks(pid) if pid else None
    process = f"{pid}:{ticks}" if pid and ticks else None
    return EngineMarkers(BOOT_ID.read_text().strip(), engine_id, process, _unix_time(ticks) if ticks else None)


def _daemon_pid(url: str) -> int | None:
    pid = _peer_pid(url.removeprefix("unix://")) if url.startswith("unix://") else None
    if pid is not None and _name(pid).startswith(DAEMON):
        return pid
    for path in PID_FILES:
        try:
            return int(path.read_text())
        except (OSError, ValueError):
            continue
    return None


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _peer_pid(path: str) -> int | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(5)
        try:
            peer.connect(path)
        except OSError:
            return None
        raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[0]) or None


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _unix_time(ticks: int) -> float:
    boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")

"""Counters of a container's control group, read from the host's side (cgroup v1 and v2)."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Counters:
    memory_bytes: int
    cpu_s: float
    oom_kills: int


def read_counters(pid: int, container: str) -> Counters | None:
    """Return the counters of the container whose init is ``pid``; null once its group is gone."""
    groups = _groups(pid, container)
    if groups is None:
        return None
    try:
        return _read_v2(ROOT / groups[""]) if "memory" not in groups else _read_v1(groups)
    except (OSError, KeyError, ValueError):
        return None


def belongs_to(pid: int, container: str) -> bool:
    """Tell whether the process is inside the container's groups: a pid alone may have been given to another."""
    return _groups(pid, container) is not None


def _groups(pid: int, container: str) -> dict[str, str] | None:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    groups: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path.lstrip("/")
    return groups if any(container in path for path in groups.values()) else None


def _read_v1(groups: dict[str, str]) -> Counters:
    memory = ROOT / "memory" / groups["memory"]
    kills = _keyed(memory / "memory.oom_control").get("oom_kill", 0)
    cpu = int((ROOT / "cpuacct" / groups["cpuacct"] / "cpuacct.usage").read_text())
    return Counters(int((memory / "memory.usage_in_bytes").read_text()), cpu / 1e9, kills)


def _read_v2(group: Path) -> Counters:
    kills = _keyed(group / "memory.events").get("oom_kill", 0)
    cpu = _keyed(group / "cpu.stat")["usage_usec"]
    return Counters(int((group / "memory.current").read_text()), cpu / 1e6, kills)


def _keyed(path: Path) -> dict[str, int]:
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}

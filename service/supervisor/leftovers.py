"""Processes that an earlier, dead supervisor left of the same cluster. To be used under its lock."""

import json
import signal
from pathlib import Path
from typing import cast

from service.domain.errors import Conflict
from service.supervisor import proc
from service.supervisor.account import Account
from service.supervisor.cluster import Cluster
from service.supervisor.locks import write_whole

_CLOCK_TOLERANCE_S = 5.0
_DYING_S = 6.0  # the kernel has told the server to end; its own patience with its children is 5 s


def cluster_name(cluster: Cluster) -> str:
    """The name that the server shows in the title of each of its processes; one per data directory and machine."""
    info = cluster.data.stat()
    return f"workstead-{info.st_dev:x}-{info.st_ino:x}"


def processes(cluster: Cluster, account: Account) -> list[int]:
    """Return the live processes of the cluster: by owner and title, so that it needs no right to trace them."""
    if not cluster.data.exists():
        return []
    title, option = f"postgres: {cluster_name(cluster)}:", f"cluster_name={cluster_name(cluster)}"
    return list(proc.find(account.uid, lambda argv: argv[0].startswith(title) or option in argv))


def record_server(cluster: Cluster, pid: int) -> None:
    write_whole(cluster.server_record, json.dumps(proc.identity(pid)).encode())


def recorded_server(cluster: Cluster) -> int | None:
    """Return the pid of the server we started last, if that very process (pid, start time, boot) still runs."""
    try:
        record = cast("dict[str, object] | None", json.loads(cluster.server_record.read_text()))
    except (FileNotFoundError, ValueError):
        return None
    pid = (record or {}).get("pid")
    return pid if isinstance(pid, int) and proc.identity(pid) == record else None


def clear(cluster: Cluster, account: Account) -> None:
    """End what is left of an earlier start and remove its pid file.

    Raises :class:`Conflict` (``foreign_postgres``) when a server that we did not start holds the cluster.
    """
    proc.wait_until(lambda: not processes(cluster, account), _DYING_S, poll_s=0.1)
    pid_file = cluster.data / "postmaster.pid"
    holder = _holder(pid_file)
    if holder is not None and holder != recorded_server(cluster):
        detail = f"process {holder} serves {cluster.data} and was not started by us: stop it first"
        raise Conflict("foreign_postgres", detail, pid=holder)
    kill_all(cluster, account)
    # nothing of the cluster lives: whatever process has that number now is somebody else
    pid_file.unlink(missing_ok=True)


def _holder(pid_file: Path) -> int | None:
    """Return the process of the pid file if it still runs: same number, and started when the file says."""
    try:
        lines = pid_file.read_text().splitlines()
        pid, written_at = int(lines[0]), int(lines[2])
    except (FileNotFoundError, ValueError, IndexError):
        return None
    started = proc.started_at(pid)
    return pid if started is not None and abs(started - written_at) <= _CLOCK_TOLERANCE_S else None


def kill_all(cluster: Cluster, account: Account) -> None:
    """SIGKILL every process of the cluster until none is seen (a dying server may still fork)."""

    def none_left() -> bool:
        left = processes(cluster, account)
        proc.kill(left, signal.SIGKILL)
        return not left

    proc.wait_until(none_left, 10.0)

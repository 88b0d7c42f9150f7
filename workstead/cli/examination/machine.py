"""The machine itself: user, loop devices, disk, memory, directories, ports, proxies."""

import os
import resource
import shutil
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from workstead.cli.examination.finding import Finding

GIB = 1 << 30
FREE_BYTES = 5 * GIB
MEMORY_BYTES = 4 * GIB
FILES = 4096
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
LOCAL_NAMES = ("127.0.0.1", "localhost", "*")
DEFAULT_PORT = 8040


def examine_machine(data_dir: Path, engine_root: str | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield _user()
    yield _loop_devices()
    yield from _disks(data_dir, engine_root)
    yield _memory()
    yield _open_files()
    yield _data_dir(data_dir)
    yield from _proxies(environ)


def _user() -> Finding:
    if os.geteuid() == 0:
        return Finding(
            "user", True, "root: hard quotas are possible; the embedded PostgreSQL runs as a user of its own"
        )
    return Finding(
        "user", None, "not root: runs work, but without hard disk quotas, and untrusted projects are refused"
    )


def _loop_devices() -> Finding:
    there = Path("/dev/loop-control").exists() and os.geteuid() == 0
    said = "available: hard disk quotas" if there else "not available: workspaces have a watchdog instead of a quota"
    return Finding("loop devices", True if there else None, said)


def _disks(data_dir: Path, engine_root: str | None) -> Iterator[Finding]:
    yield _disk("disk", data_dir, "the data directory")
    if engine_root and os.access(engine_root, os.X_OK):
        yield _disk("engine's disk", Path(engine_root), "images and containers")


def _disk(what: str, path: Path, of: str) -> Finding:
    at = _existing(path)
    free = shutil.disk_usage(at).free
    said = f"{free / GIB:.1f} GiB free at {at} ({of})"
    if free >= FREE_BYTES:
        return Finding(what, True, said)
    return Finding(
        what, None, f"{said}: less than {FREE_BYTES / GIB:.0f}; new runs are held when it runs low, make room"
    )


def _existing(path: Path) -> Path:
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())


def _memory() -> Finding:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    total, free = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    said = f"{total / GIB:.1f} GiB, {free / GIB:.1f} available"
    if total >= MEMORY_BYTES:
        return Finding("memory", True, said)
    return Finding(
        "memory", None, f"{said}: a run takes 2 GiB unless its task says less; lower WORKSTEAD_WORKER__SLOTS"
    )


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FILES or soft == resource.RLIM_INFINITY:
        return Finding("open files", True, f"up to {soft}")
    return Finding("open files", None, f"up to {soft}: raise it for many runs (`ulimit -n {min(hard, 65_536)}`)")


def _data_dir(data_dir: Path) -> Finding:
    try:
        info = data_dir.lstat()
    except FileNotFoundError:
        parent = _existing(data_dir)
        if os.access(parent, os.W_OK):
            return Finding("data", True, f"{data_dir} is not there yet; `workstead serve` makes it")
        return Finding("data", False, f"{data_dir} cannot be made: {parent} is not yours (set WORKSTEAD_DATA_DIR)")
    except OSError as error:
        return Finding("data", False, f"{data_dir}: {error.strerror}")
    if not stat.S_ISDIR(info.st_mode):
        return Finding("data", False, f"{data_dir} is not a directory (set WORKSTEAD_DATA_DIR)")
    if info.st_uid not in (os.geteuid(), 0) or not os.access(data_dir, os.W_OK):
        return Finding("data", False, f"{data_dir} belongs to another user (set WORKSTEAD_DATA_DIR, or be that user)")
    if stat.S_IMODE(info.st_mode) & 0o022:
        return Finding("data", False, f"{data_dir} can be written by others: chmod 755 {data_dir}")
    return Finding("data", True, f"{data_dir}, yours alone to write")


def _proxies(environ: Mapping[str, str]) -> Iterator[Finding]:
    named = [n for name in PROXIES for n in (name, name.lower()) if environ.get(n)]
    direct = {part.strip() for name in ("NO_PROXY", "no_proxy") for part in environ.get(name, "").split(",")}
    if named and not direct & set(LOCAL_NAMES):
        said = (
            f"{', '.join(named)} set and no NO_PROXY: requests to a service here would go to the proxy, token included"
        )
        yield Finding("proxy", None, f"{said} (set NO_PROXY=127.0.0.1,localhost)")
    elif named:
        yield Finding("proxy", True, f"{', '.join(named)}; addresses of this machine are left out. No sandbox sees any")


def examine_port(environ: Mapping[str, str], answers: str | None) -> Finding:
    """Say whether the API's port can be had; ``answers`` is the URL at which a service of ours does."""
    given = environ.get("WORKSTEAD_API__PORT", str(DEFAULT_PORT))
    port = int(given) if given.isascii() and given.isdecimal() and int(given) < 65_536 else -1
    if port < 0:
        return Finding("port", False, f"WORKSTEAD_API__PORT={given} is no port")
    if port == 0:
        return Finding("port", True, "a free one is taken at the start")
    if answers is not None and answers.rstrip("/").endswith(f":{port}"):
        return Finding("port", True, f"{port} is the running service's")
    host = environ.get("WORKSTEAD_API__HOST", "127.0.0.1")
    trouble = why_not_free(host, port)
    if trouble is not None:
        return Finding("port", False, f"{host}:{port}: {trouble} (set WORKSTEAD_API__PORT, or stop who has it)")
    return Finding("port", True, f"{host}:{port} is free")


def why_not_free(host: str, port: int) -> str | None:
    """Return why a server could not listen there; None if it could."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None

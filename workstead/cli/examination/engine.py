"""The Docker engine: whether it is there, how old, and which of our images it has."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workstead.cli.engine import Engine
from workstead.cli.examination.finding import Finding

RUNC_FLOOR = (1, 3, 6)
"""First runc without the published escapes (CVE-2019-5736 … 2026-41579)."""
OLDEST_ENGINE_API = (1, 41)
NEEDED_IMAGES = ("base", "workbench")
"""Without these nothing runs; a service lacks a feature without the others."""
CATALOGUE = Path(__file__).resolve().parents[3] / "sandbox_images" / "images.toml"


def examine_engine(info: dict[str, Any], versions: dict[str, Any]) -> Iterator[Finding]:
    """Yield what the engine says about itself: ``/info`` and ``/version``."""
    yield _age(info, versions)
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


def _age(info: dict[str, Any], versions: dict[str, Any]) -> Finding:
    found = f"Docker {versions.get('Version')}, API {versions.get('ApiVersion')}, storage {info.get('Driver')}"
    if _numbers(versions.get("ApiVersion", "")) >= OLDEST_ENGINE_API:
        return Finding("engine", True, found)
    return Finding("engine", False, f"{found}; too old: API {'.'.join(map(str, OLDEST_ENGINE_API))} (20.10) is needed")


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


def examine_images(found: dict[str, str], catalogue: Path = CATALOGUE) -> Finding:
    """Say which sandbox images are there. ``found``: name → tag."""
    rows: dict[str, Any] = tomllib.loads(catalogue.read_text())["images"] if catalogue.exists() else {}
    known = [name for name, row in rows.items() if not row.get("on_demand")]
    absent = [name for name in (*NEEDED_IMAGES, *known) if name not in found]
    said = ", ".join(sorted(found)) or "none"
    if absent:
        said += f"; without {', '.join(dict.fromkeys(absent))} (`make images` builds what is missing)"
    needed = any(name in NEEDED_IMAGES for name in absent)
    return Finding("images", False if needed else None if absent else True, said)


def examine_access(engine: Engine) -> Iterator[Finding]:
    """Say who may use a local engine: whoever may, is root on this machine."""
    if engine.socket and Path(engine.socket).exists() and not os.access(engine.socket, os.W_OK):
        yield Finding("engine access", False, f"this user may not write to {engine.socket}: be root, or in its group")

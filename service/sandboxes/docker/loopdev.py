"""Loop devices by backing file. The kernel's own table is the record: nothing can be forgotten in a crash."""

import json
from pathlib import Path
from typing import Any, cast

from service.sandboxes.docker.tools import run_tool

_DELETED = " (deleted)"


def attach(backing: Path) -> str:
    """Return the device of ``backing``, attached now or before."""
    known = devices_below(backing)
    if known:
        return known[0]
    return run_tool(["losetup", "--find", "--show", str(backing)]).strip()


def detach(device: str) -> None:
    run_tool(["losetup", "--detach", device])


def devices_below(path: Path) -> list[str]:
    """Return the devices whose backing file is ``path`` or lies below it, deleted files too."""
    return [device for device, backing in table() if backing == path or path in backing.parents]


def table() -> list[tuple[str, Path]]:
    """Return (device, backing file) of every attached loop device of this machine."""
    text = run_tool(["losetup", "--list", "--json", "--output", "NAME,BACK-FILE"]).strip()
    if not text:
        return []
    rows = cast("list[dict[str, Any]]", json.loads(text)["loopdevices"])
    return [(str(r["name"]), Path(str(r["back-file"]).removesuffix(_DELETED))) for r in rows if r.get("back-file")]

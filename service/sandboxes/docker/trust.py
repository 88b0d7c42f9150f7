"""Which runtimes may run an untrusted project's work on this host (CONTRACTS 11, facts on runc's escapes)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

RUNC_FLOOR = (1, 3, 6)
"""First runc without the published escapes (CVE-2019-5736 … 2026-41579)."""


def untrusted_runtimes(offered: Iterable[str], versions: Mapping[str, Any], *, soft_quota: bool) -> list[str]:
    """Return those of ``offered`` that are safe enough: gVisor, and runc at or above the floor; none without a hard quota.

    ``versions`` is the engine's answer to ``/version``; a runc of unknown version counts as below the floor.
    """
    if soft_quota:
        return []
    components: list[Mapping[str, Any]] = versions.get("Components") or []
    runc = next((str(c.get("Version")) for c in components if c.get("Name") == "runc"), "")
    fresh = _numbers(runc) >= RUNC_FLOOR
    return [name for name in offered if name.startswith("runsc") or (name == "runc" and fresh)]


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(n) for n in found[1].split(".")) if found else ()

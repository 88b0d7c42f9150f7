"""What a service that has stopped left on the machine: processes, mounts, loop devices that belong to its directory."""

import os
from collections.abc import Iterator
from pathlib import Path


def leftovers(data_dir: Path) -> list[str]:
    """Return what still refers to ``data_dir``, in words; empty is what should be."""
    needle = str(data_dir)
    return sorted({*_processes(needle), *_mounts(needle), *_loops(needle)})


def _processes(needle: str) -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
        except OSError:
            continue  # it ended meanwhile, or is another user's
        if needle.encode() in words:
            command = words.split(b"\0", 1)[0].decode("utf-8", "replace")
            yield f"process {entry.name} ({command})"


def _mounts(needle: str) -> Iterator[str]:
    for mount in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if needle in mount:
            yield f"mount {mount.split()[4]}"


def _loops(needle: str) -> Iterator[str]:
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue  # detached meanwhile
        if needle in backing:
            yield f"loop device {file.parts[3]} ({backing})"

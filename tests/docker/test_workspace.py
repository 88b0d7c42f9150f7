"""Workspaces on the host's own tools."""

import os
from pathlib import Path

import pytest

from service.domain.limits import KIB, MIB, Limits
from service.sandboxes.docker.workspace import LoopWorkspaces, probe


@pytest.mark.parametrize("disk_bytes", [16 * MIB, 32 * MIB, 100 * MIB])
def test_a_small_disk_holds_something_whatever_inodes_are_asked_for(tmp_path: Path, disk_bytes: int) -> None:
    """The table of 200 000 inodes alone takes 51 MB."""
    if not isinstance(probe(tmp_path), LoopWorkspaces):
        pytest.skip("no loop devices here")
    store, home = LoopWorkspaces(tmp_path / "templates"), tmp_path / "home"
    home.mkdir()
    try:
        store.create(home, Limits(disk_bytes=disk_bytes))
        with store.opened(home) as fd:
            room = os.statvfs(fd)
    finally:
        store.release(home)
    assert room.f_bavail * room.f_frsize > disk_bytes * 0.6
    assert room.f_favail >= disk_bytes // (4 * KIB)

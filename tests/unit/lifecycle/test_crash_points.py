import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from service.lifecycle.crash_points import NAMES, CrashPoints

PROGRAM = """
import sys
from pathlib import Path
from service.lifecycle.crash_points import CrashPoints
CrashPoints(Path(sys.argv[1])).reach("drive.decided")
print("lives")
"""


def reach(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, check=False)


def test_an_armed_point_kills_once(tmp_path: Path) -> None:
    (tmp_path / "crash-point").write_text("drive.decided")
    assert reach(tmp_path).returncode == -9
    assert reach(tmp_path).stdout == "lives\n"


def test_other_points_and_inactive_ones_do_nothing(tmp_path: Path) -> None:
    CrashPoints().reach("drive.decided")
    (tmp_path / "crash-point").write_text("grade.started")
    for name in NAMES:
        if name != "grade.started":
            CrashPoints(tmp_path).reach(name)
    with pytest.raises(AssertionError):
        CrashPoints(tmp_path).reach("nowhere")


def test_a_point_may_be_held_until_told_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "crash-point").write_text("grade.decided:wait")
    held = threading.Thread(target=CrashPoints(tmp_path).reach, args=("grade.decided",))
    held.start()
    until = time.monotonic() + 10
    while not (tmp_path / "reached-grade.decided").exists() and time.monotonic() < until:
        held.join(0.01)
    assert held.is_alive()
    (tmp_path / "go-grade.decided").touch()
    held.join(10)
    assert not held.is_alive()
    CrashPoints(tmp_path).reach("grade.decided")

"""``workstead doctor`` on a machine with an engine: runtimes are really tried, and nothing of that stays."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workstead.cli.examination.machine import why_not_free

WORKSTEAD = Path(sys.executable).with_name("workstead")


def doctor(data_dir: Path, **settings: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = subprocess.run(
        [WORKSTEAD, "doctor", "--json", "--data-dir", data_dir],
        env={**os.environ, "WORKSTEAD_API__PORT": "0", **settings},
        capture_output=True, text=True, timeout=200, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {row["what"]: row for row in rows}


@pytest.mark.timeout(240)
def test_runtimes_are_tried_and_nothing_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code, rows = doctor(tmp_path, WORKSTEAD_WORKER__RUNTIMES='["runc", "no-such-runtime"]')
    assert code == 0, rows
    assert rows["runtime runc"]["state"] == "ok"
    assert "planted listener reached" in rows["runtime runc"]["said"]
    assert rows["runtime no-such-runtime"]["state"] == "note"
    assert rows["database"]["state"] == "ok"
    assert rows["quota"]["state"] in ("ok", "note")
    assert list(tmp_path.iterdir()) == []
    assert left("ps", "-aq", "--filter", "label=org.workstead.deployment") == []
    loops = [p.read_text() for p in Path("/sys/block").glob("loop*/loop/backing_file")]
    assert not [loop for loop in loops if str(tmp_path) in loop]


def left(*arguments: str) -> list[str]:
    """Return ids of what the engine has of a doctor's deployments."""
    asked = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=30, check=True)
    label = '{{index .Config.Labels "org.workstead.deployment"}}'
    found: list[str] = []
    for container in asked.stdout.split():
        argv = ["docker", "inspect", "-f", label, container]
        said = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stdout
        found += [container] if said.startswith("doctor") else []
    return found


@pytest.mark.timeout(240)
def test_without_any_runtime_that_works_something_is_missing(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code, rows = doctor(
        tmp_path,
        WORKSTEAD_WORKER__RUNTIMES='["no-such-runtime"]',
        WORKSTEAD_DATABASE_URL="postgresql://x@127.0.0.1:9/x",
    )
    assert code == 1
    assert rows["runtime no-such-runtime"]["state"] == "missing"
    assert rows["database"]["state"] == "missing"
    assert "is it running" in rows["database"]["said"]


def test_a_taken_port_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert why_not_free("127.0.0.1", port)
    assert why_not_free("127.0.0.1", port) is None

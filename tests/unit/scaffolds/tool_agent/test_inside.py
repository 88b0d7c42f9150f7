"""The program that does a tool call inside: run here as it is run there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.scaffolds.tool_loop.calls import helper

pytestmark = pytest.mark.longer


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / ".home").mkdir()
    return tmp_path


def call(workspace: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    request = {"timeout_s": 20, "limit_bytes": 1000, **arguments, "tool": tool}
    env = {"WORKSPACE": str(workspace), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-I", "-c", helper()], input=json.dumps(request).encode(), capture_output=True, env=env,
        cwd=workspace, timeout=60, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_working_directory_and_environment_stay(workspace: Path) -> None:
    call(workspace, "bash", command="mkdir a; cd a; export X='one  two'; exit 3")
    told = call(workspace, "bash", command='echo "$X"; pwd')
    assert told["text"].split("\n") == ["one  two", str(workspace / "a"), ""]
    assert call(workspace, "python", code="import os; print(os.getcwd())")["text"].strip() == str(workspace / "a")


def test_long_output_keeps_both_ends_and_the_true_count(workspace: Path) -> None:
    told = call(workspace, "bash", command="echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert told["text"].startswith("first\n")
    assert told["text"].endswith("\nlast\n")
    assert told["bytes"] == 5_000_012
    assert "[... 4999012 of 5000012 bytes are not shown ...]" in told["text"]
    assert len(told["text"]) < 1200


def test_a_program_in_the_background_goes_on_and_is_not_waited_for(workspace: Path) -> None:
    told = call(
        workspace,
        "bash",
        command="(for i in 1 2 3 4 5 6 7 8 9; do echo tick; sleep 0.2; done; touch done) & echo started",
    )
    assert (told["background"], told["code"]) == (True, 0)
    assert "started" in told["text"]
    waited = call(workspace, "bash", command="for i in $(seq 100); do [ -f done ] && break; sleep 0.1; done; ls done")
    assert waited["text"] == "done\n"


def test_time_is_bounded_and_what_was_said_is_kept(workspace: Path) -> None:
    told = call(workspace, "bash", command="echo before; sleep 60", timeout_s=1)
    assert (told["timed_out"], told["text"]) == (True, "before\n")


def test_files_are_written_read_and_edited(workspace: Path) -> None:
    assert call(workspace, "write_file", path="a/b.txt", content="one\ntwo\none\n")["ok"]
    assert (
        call(workspace, "read_file", path="a/b.txt", offset=2, limit=1)["text"]
        == "     2\ttwo\n[3 lines in all; shown: 2 to 2]"
    )
    assert not call(workspace, "edit_file", path="a/b.txt", old_text="one", new_text="1")["ok"]
    assert call(workspace, "edit_file", path="a/b.txt", old_text="one", new_text="1", replace_all=True)["ok"]
    assert (workspace / "a/b.txt").read_text() == "1\ntwo\n1\n"
    assert not call(workspace, "edit_file", path="a/b.txt", old_text="zz", new_text="1")["ok"]
    assert call(workspace, "list_files")["text"] == "a/\na/b.txt  8 bytes"
    assert not call(workspace, "read_file", path="nope")["ok"]
    assert not call(workspace, "read_file", path="a")["ok"]

"""The program that owns an MCP server inside: run here as it is run there, with a real server and with bad ones."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.scaffolds.tool_loop.servers.offered import helper
from tests.unit.scaffolds.tool_agent import mcp_server

pytestmark = pytest.mark.longer
REAL = [sys.executable, mcp_server.__file__]
SAYS = "import sys; sys.stdin.readline(); print(%s, flush=True); sys.stdin.readline()"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    # A path that fits into no address of a socket.
    top = tmp_path / ("deep" * 20)
    top.mkdir()
    yield top
    for socket in top.glob(".home/.tool_agent/*.sock"):
        socket.unlink()  # the owner ends with it


def started(
    workspace: Path, argv: Sequence[str], method: str, params: Any, timeout_s: float
) -> subprocess.Popen[bytes]:
    request = {
        "server": "small", "argv": list(argv), "env": {"EXTRA": "1"}, "method": method, "params": params,
        "timeout_s": timeout_s,
    }  # fmt: skip
    env = {"WORKSPACE": str(workspace), "PATH": os.environ["PATH"]}
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", helper()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=workspace
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(request).encode())
    child.stdin.close()
    return child


def ended(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert child.stdout is not None
    with child.stdout:
        told: dict[str, Any] = json.loads(child.stdout.read())
    assert child.wait(60) == 0
    return told


def ask(workspace: Path, method: str, params: Any, argv: Sequence[str] = REAL, timeout_s: float = 60) -> dict[str, Any]:
    return ended(started(workspace, argv, method, params, timeout_s))


def call(workspace: Path, tool: str, timeout_s: float = 60, **arguments: Any) -> dict[str, Any]:
    return ask(workspace, "tools/call", {"name": tool, "arguments": arguments}, timeout_s=timeout_s)


def texts(told: dict[str, Any]) -> str:
    return "".join(block["text"] for block in told["result"]["content"])


def test_one_server_is_kept_for_all_calls(workspace: Path) -> None:
    listed = ask(workspace, "tools/list", {})["result"]["tools"]
    assert {tool["name"] for tool in listed} >= {"add", "count", "fail", "hang", "die"}
    assert texts(call(workspace, "add", a=40, b=2)) == "42 ✓"
    several = [started(workspace, REAL, "tools/call", {"name": "count", "arguments": {}}, 60) for _ in range(4)]
    assert sorted(texts(ended(child)) for child in several) == ["1", "2", "3", "4"]
    assert (workspace / "counted").read_text() == "once\n" * 4  # its working directory


def test_one_that_died_is_said_and_started_anew(workspace: Path) -> None:
    assert texts(call(workspace, "count")) == "1"
    told = call(workspace, "die")
    assert told["ok"] is False
    assert "exit code -9" in told["text"]
    assert "my last words" in told["text"]
    assert texts(call(workspace, "count")) == "1"


def test_one_that_hangs_is_left_after_its_time(workspace: Path) -> None:
    assert call(workspace, "hang", timeout_s=1) == {"ok": False, "text": "no answer in 1 s"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["/no/server"], "cannot be started"),
        ([sys.executable, "-c", "print('hello')"], "the server ended (exit code 0)"),
        ([sys.executable, "-c", SAYS % repr('{"id": 1, "error": {"code": 7, "message": "no"}}')], "it did not start: error 7: no"),
        ([sys.executable, "-c", SAYS % "'x' * (5 << 20)"], "an answer had more than"),
    ],
)  # fmt: skip
def test_one_that_is_none_is_an_error(argv: list[str], says: str, workspace: Path) -> None:
    told = ask(workspace, "tools/list", {}, argv)
    assert told["ok"] is False
    assert says in told["text"]


def test_its_owner_ends_with_its_place(workspace: Path) -> None:
    assert texts(call(workspace, "count")) == "1"
    (socket,) = workspace.glob(".home/.tool_agent/mcp-small.sock")
    socket.unlink()
    assert texts(call(workspace, "count")) == "1"

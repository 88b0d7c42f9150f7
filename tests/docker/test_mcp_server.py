"""An MCP server lives on in a hardened sandbox between the calls that reach it."""

import json
from typing import Any

from service.sandboxes.contract import Sandbox
from service.scaffolds.tool_loop.servers.offered import helper
from service.testing.sandbox_bench import ENV
from service.testing.sandbox_suite import Bench

SERVER = """
import json, sys
calls = 0
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        calls += 1
        if asked["params"]["name"] == "die":
            sys.exit(3)
    if "id" in asked:
        result = {"content": [{"type": "text", "text": str(calls)}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def call(sandbox: Sandbox, tool: str, n: int) -> dict[str, Any]:
    request: dict[str, Any] = {
        "server": "counter", "argv": ["python3", "/workspace/server.py"], "env": {}, "method": "tools/call",
        "params": {"name": tool, "arguments": {}}, "timeout_s": 20,
    }  # fmt: skip
    argv = ["python3", "-I", "-c", helper()]
    done = await sandbox.exec(argv, stdin=json.dumps(request).encode(), env=ENV, timeout_s=60, call_id=f"mcp-{n}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


async def test_a_server_is_kept_between_calls_and_started_anew_when_it_died(bench: Bench) -> None:
    sandbox = await bench.backend.make(bench.spec)
    try:
        await sandbox.write_file("server.py", SERVER.encode())
        texts = [(await call(sandbox, "count", n))["result"]["content"][0]["text"] for n in range(3)]
        assert texts == ["1", "2", "3"]
        assert "exit code 3" in (await call(sandbox, "die", 3))["text"]
        assert (await call(sandbox, "count", 4))["result"]["content"][0]["text"] == "1"
    finally:
        await sandbox.destroy()

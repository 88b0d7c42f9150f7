"""A run as an MCP server, spoken to by the official client."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from service.domain.run_states import Outcome
from tests.api.helpers import served
from tests.integration.driving.remote import Remote
from tests.integration.lifecycle.stage import RIGHT


@asynccontextmanager
async def session(remote: Remote, run_id: str) -> AsyncGenerator[ClientSession]:
    headers = {"Authorization": f"Bearer {remote.token}", "Workstead-Lease": remote.lease}
    async with (
        served(remote.app) as url,
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(f"{url}/v1/runs/{run_id}/mcp", http_client=http) as streams,
        ClientSession(*streams[:2]) as made,
    ):
        yield made


def text(result: Any) -> str:
    return "".join(part.text for part in result.content)


async def test_the_official_client_does_a_task(remote: Remote) -> None:
    run = await remote.begin()
    await remote.claim(run.id)
    async with session(remote, run.id) as mcp:
        begun = await mcp.initialize()
        assert begun.instructions == "Add up input.csv."
        tools = (await mcp.list_tools()).tools
        assert [t.name for t in tools] == ["exec", "read_file", "write_file", "list_files", "finish"]
        done = await mcp.call_tool("exec", {"argv": ["sh", "-c", "cat input.csv; exit 3"]})
        assert text(done) == "40\n2\n\n[exit code 3]"
        await mcp.call_tool("write_file", {"path": "output/answers.json", "content": json.dumps(RIGHT)})
        assert json.loads(text(await mcp.call_tool("read_file", {"path": "output/answers.json"}))) == RIGHT
        assert "answers.json" in text(await mcp.call_tool("list_files", {"path": "output"}))
        assert "file_not_found" in text(await mcp.call_tool("read_file", {"path": "none"}))
        assert "bad_arguments" in text(await mcp.call_tool("exec", {"argv": "true"}))
        await mcp.call_tool("finish", {"summary": "done"})
        assert "lease_lost" in text(await mcp.call_tool("exec", {"argv": ["true"]}))
    assert (await remote.end(run.id)).outcome is Outcome.GRADED


async def test_messages_that_no_client_sends(remote: Remote) -> None:
    run = await remote.begin()
    path = f"/v1/runs/{run.id}/mcp"
    unknown = await remote.call("POST", path, json={"jsonrpc": "2.0", "id": 7, "method": "sampling/none"})
    assert (unknown["id"], unknown["error"]["code"]) == (7, -32601)
    assert "result" not in unknown
    tool = {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "rm"}}
    assert (await remote.call("POST", path, json=tool))["error"]["code"] == -32602
    call = {"name": "exec", "arguments": {"argv": ["touch", "x"]}}
    refused = await remote.call("POST", path, json={**tool, "params": call})
    assert refused["result"]["isError"]
    assert "lease_lost" in refused["result"]["content"][0]["text"]
    await remote.call("POST", path, 202, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    await remote.call("POST", path, 422, json=[tool])
    await remote.call("GET", path, 405)
    assert not await remote.stage.events(run.id, "tool.call")

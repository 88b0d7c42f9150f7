"""An MCP server of the official library behind a gateway service: no key and no network in the sandbox."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from service.domain.agents import AgentSettings
from service.domain.models import Dialect
from service.lifecycle.loop_services import GatewayServices
from service.models.messages import Reach
from service.scaffolds.loops import Act, LoopJob, Tell, silent
from service.scaffolds.tool_loop.servers import http
from service.scaffolds.tool_loop.servers.offered import UNKNOWN, Servers
from service.scaffolds.tool_loop.servers.settings import McpServer
from tests.api.helpers import served
from tests.integration.gateway.bench import TOKEN, GateBench
from tests.integration.gateway.test_services import SECRET, Rig, Somewhere
from tests.integration.models.pipe import piped
from tests.unit.scaffolds.build import CONTEXT, task
from tests.unit.scaffolds.tool_agent.mcp_server import made

pytestmark = pytest.mark.asyncio(loop_scope="module")
SERVICE: dict[str, Any] = {
    "name": "tools", "allow": [{"methods": ["POST"], "path": "/mcp"}], "credential": {"place": "bearer"},
    "max_calls_per_run": 12,
}  # fmt: skip


class Watched:
    """The server, and who asked it with which key."""

    def __init__(self, *, json_response: bool) -> None:
        self.app = made().streamable_http_app(json_response=json_response)
        self.keys: list[str] = []
        self.forget = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {k.decode(): v.decode() for k, v in scope["headers"]}
            self.keys.append(headers.get("authorization", ""))
            if self.forget and "mcp-session-id" in headers:
                self.forget = False
                await send({"type": "http.response.start", "status": 404, "headers": []})
                await send({"type": "http.response.body", "body": b"gone"})
                return
        await self.app(scope, receive, send)


@dataclass
class Pages:
    """A journal in memory."""

    known: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict[tuple[str, str], dict[str, Any]])
    warnings: list[str] = field(default_factory=list[str])

    async def step(self, kind: str, key: str, act: Act, tell: Tell = silent) -> dict[str, Any]:
        if (kind, key) not in self.known:
            self.known[kind, key] = await act()
            self.warnings += [event.payload["text"] for event in tell(self.known[kind, key])]
        return self.known[kind, key]


@dataclass
class Place:
    rig: Rig
    server: Watched
    services: GatewayServices

    async def open(self, pages: Pages, **fields: Any) -> Servers:
        settings = {"mcp_servers": {"far": {"service": "tools", "path": "mcp", **fields}}, "services": ["tools"]}
        context = replace(CONTEXT, settings=AgentSettings.of(settings))
        nothing = cast("Any", None)
        return await Servers.open(LoopJob(task(), context, nothing, nothing, pages, services=self.services))


@pytest_asyncio.fixture(loop_scope="module")
async def place(bench: GateBench, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    server = Watched(json_response=getattr(request, "param", False))
    async with served(cast("FastAPI", server)) as url:
        rig = Rig(bench, Somewhere(), url)
        client = await rig.client(**SERVICE)
        async with piped(tmp_path / "gateway.sock", httpx.URL(client.base_url).port or 0):
            reach = Reach(str(tmp_path / "gateway.sock"), TOKEN, "m", Dialect.OPENAI)
            yield Place(rig, server, GatewayServices(reach, ["tools"]))
        await client.aclose()
        await rig.endpoints.shut()
        await bench.ledger.flush()


@pytest.mark.parametrize("place", [True, False], indirect=True, ids=["json", "events"])
async def test_its_tools_are_called_with_a_key_that_nobody_sees(place: Place) -> None:
    servers = await place.open(Pages(), deny=["much"])
    assert {"mcp__far__add", "mcp__far__count"} <= set(servers.tools)
    assert "mcp__far__much" not in servers.tools
    value = await servers.call("mcp__far__add", {"a": 40, "b": 2}, "turn-1-call-0")
    assert value == {"text": "42 ✓", "is_error": False}
    assert (await servers.call("mcp__far__count", {}, "turn-1-call-1"))["text"] == "1"
    assert set(place.server.keys) == {f"Bearer {SECRET}"}
    assert len(await place.rig.calls()) == 5  # initialize, initialized, list, two calls: no stream beside them


async def test_a_call_that_may_have_been_done_is_not_repeated(place: Place) -> None:
    pages = Pages()
    servers = await place.open(pages)
    assert (await servers.call("mcp__far__count", {}, "k"))["text"] == "1"
    successor = await place.open(pages)
    assert await successor.call("mcp__far__count", {}, "k") == {"text": UNKNOWN, "is_error": True}
    assert (await successor.call("mcp__far__count", {}, "l"))["text"] == "2"
    assert (await successor.call("mcp__far__add", {"a": 1, "b": 1}, "k"))["text"] == "2 ✓"


async def test_a_forgotten_session_is_opened_anew(place: Place) -> None:
    servers = await place.open(Pages())
    place.server.forget = True
    assert (await servers.call("mcp__far__add", {"a": 1, "b": 2}, "k"))["text"] == "3 ✓"


async def test_a_spent_budget_and_a_hanging_server_are_errors_of_the_call(place: Place) -> None:
    servers = await place.open(Pages(), timeout_s=1)
    assert await servers.call("mcp__far__hang", {}, "h") == {
        "text": "MCP server far: no answer in 1 s",
        "is_error": True,
    }
    texts = [(await servers.call("mcp__far__add", {"a": 1, "b": n}, str(n)))["text"] for n in range(12)]
    assert "service_budget_exhausted" in texts[-1]


async def test_a_path_that_is_not_allowed_leaves_the_run_without_its_tools(place: Place) -> None:
    pages = Pages()
    servers = await place.open(pages, path="admin")
    assert not servers.tools
    assert "call_not_allowed" in pages.warnings[0]


async def test_an_answer_is_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    session = http.HttpSession(place.services, McpServer(service="tools", path="mcp"))
    await session.open(20)
    monkeypatch.setattr(http, "ANSWER_BYTES", 10_000)
    with pytest.raises(http.ServerFailed, match="more than 10000 bytes"):
        await session.ask("tools/call", {"name": "much", "arguments": {}}, 20)

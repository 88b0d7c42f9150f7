"""The MCP servers of one job: what they offer, asked once and kept in the journal, and the calls to them.

A server that is away, dies or hangs is an error of that call; it never ends the run.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from service.domain.events import EventType
from service.domain.json_objects import parse_object
from service.models.messages import GatewayAway
from service.sandboxes.contract import ToolFailed
from service.scaffolds.contract import Translated
from service.scaffolds.loops import LoopJob
from service.scaffolds.reading import Object, obj, objects, text
from service.scaffolds.tool_loop.schema import MAX_ARGUMENT_CHARS, Tool
from service.scaffolds.tool_loop.servers import results
from service.scaffolds.tool_loop.servers.http import ANSWER_BYTES, HttpSession, ServerFailed
from service.scaffolds.tool_loop.servers.settings import McpServer, servers_of

MOST_PAGES = 10
LIST_S = 60.0
SLACK_S = 150.0
"""What the helper inside has beyond a call's own time: the server may have to be started."""
UNKNOWN = "it is not known whether this call was done: the connection to the server was lost before its answer"


@cache
def helper() -> str:
    return (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")


class Servers:
    """Made by :meth:`open`."""

    def __init__(self, job: LoopJob) -> None:
        self.tools: dict[str, Tool] = {}
        self._job = job
        self._servers = servers_of(job.context.settings)
        self._places: dict[str, tuple[str, str]] = {}
        self._sessions = {
            name: HttpSession(job.services, server)
            for name, server in self._servers.items()
            if server.service is not None and job.services is not None
        }

    @classmethod
    async def open(cls, job: LoopJob) -> "Servers":
        """Ask every server for its tools. Raises LauncherLost, GatewayAway, FenceLost, Unavailable, JournalFull."""
        made = cls(job)
        for name, server in made._servers.items():
            await made._list(name, server)
        return made

    async def _list(self, name: str, server: McpServer) -> None:
        async def act() -> dict[str, Any]:
            try:
                tools, left_out = results.chosen(server, await self._pages(name))
            except ServerFailed as error:
                return {"tools": [], "left_out": [], "error": str(error)}
            return {"tools": tools, "left_out": left_out, "error": None}

        def tell(value: dict[str, Any]) -> Sequence[Translated]:
            said = [f"MCP server {name}: its tools are not offered: {value['error']}"] if value["error"] else []
            said += [f"MCP server {name}: tool {why}" for why in value["left_out"]]
            return [Translated(EventType.AGENT_WARNING, {"text": one}) for one in said]

        value = await self._job.journal.step("mcp.tools", name, act, tell)
        for found in value["tools"]:
            tool = results.as_tool(name, found)
            self.tools[tool.spec.name] = tool
            self._places[tool.spec.name] = (name, found["name"])

    async def _pages(self, name: str) -> list[Object]:
        listed: list[Object] = []
        params: dict[str, Any] = {}
        for page in range(MOST_PAGES):
            found = await self._ask(name, "tools/list", params, LIST_S, f"mcp-{name}-{page}")
            listed += objects(found.get("tools"))
            params = {"cursor": found.get("nextCursor")}
            if not text(found.get("nextCursor")):
                break
        return listed

    async def call(self, offered: str, arguments: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the value of a call. Raises LauncherLost, FenceLost, Unavailable, JournalFull."""
        name, tool = self._places[offered]
        params = {"name": tool, "arguments": dict(arguments)}
        if len(json.dumps(params)) > MAX_ARGUMENT_CHARS:
            return _failed(f"the arguments have more than {MAX_ARGUMENT_CHARS} characters")
        server = self._servers[name]
        try:
            if name in self._sessions and self.tools[offered].alone and not await self._first(name, key):
                return _failed(UNKNOWN)
            return results.told(await self._ask(name, "tools/call", params, server.timeout_s, key))
        except ServerFailed as error:
            return _failed(results.cut(f"MCP server {name}: {error}"))
        except GatewayAway:
            return _failed(UNKNOWN)

    async def _first(self, name: str, key: str) -> bool:
        """Tell whether nobody has sent this call before. A call that changes something is sent at most once."""
        await self._sessions[name].open(LIST_S)
        fresh = False

        async def act() -> dict[str, Any]:
            nonlocal fresh
            fresh = True
            return {}

        await self._job.journal.step("mcp.sent", key, act)
        return fresh

    async def _ask(
        self, name: str, method: str, params: Mapping[str, Any], timeout_s: float, call_id: str
    ) -> dict[str, Any]:
        session = self._sessions.get(name)
        if session is not None:
            return await session.ask(method, params, timeout_s)
        return await self._inside(name, method, params, timeout_s, call_id)

    async def _inside(
        self, name: str, method: str, params: Mapping[str, Any], timeout_s: float, call_id: str
    ) -> dict[str, Any]:
        server = self._servers[name]
        if not server.command:
            raise ServerFailed("this run has no gateway services")
        request = {
            "server": name, "argv": server.command, "env": server.env, "method": method, "params": params,
            "timeout_s": timeout_s,
        }  # fmt: skip
        try:
            done = await self._job.shell.exec(
                ["python3", "-I", "-c", helper()], call_id=call_id, stdin=json.dumps(request).encode(),
                timeout_s=timeout_s + SLACK_S, limit_bytes=ANSWER_BYTES + 1000,
            )  # fmt: skip
        except ToolFailed as error:
            raise ServerFailed(error.detail or error.type) from error
        said = parse_object(done.stdout)
        if said is None:
            raise ServerFailed(f"the answer cannot be read\n{done.stderr.decode(errors='replace')[-2000:]}".rstrip())
        if said.get("ok") is not True:
            raise ServerFailed(text(said.get("text"))[: results.RESULT_CHARS])
        return dict(obj(said.get("result")))


def _failed(said: str) -> dict[str, Any]:
    return {"text": said, "is_error": True}

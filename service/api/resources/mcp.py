"""``/v1/runs/{id}/mcp``: a run as an MCP server (streamable HTTP, JSON answers, no session), for loops that speak MCP.

By hand: the protocol's part that tools need is small, and an SDK's server would bring its own sessions, streams and
authentication. Tests talk to it with the official client.
"""

from typing import Any, cast

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import RunsDrive, State
from service.api.driving import Driven, remote_run
from service.api.json_body import StrictRoute
from service.api.mcp_tools import TOOLS, described
from service.api.problems import clean
from service.api.rendering import View, answer
from service.api.resources.leases import Secret
from service.domain.agents import Driver
from service.domain.errors import Expected
from service.lifecycle.surfaces import has_screen
from service.store import tasks

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Protocol versions, newest first."""
_METHOD_UNKNOWN, _BAD_PARAMS = -32601, -32602


class McpMessage(BaseModel):
    """A JSON-RPC 2.0 request or notification."""

    model_config = ConfigDict(extra="allow")

    jsonrpc: str = Field(pattern="^2\\.0$")
    method: str = Field(default="", max_length=200)
    id: str | int | None = None
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class McpAnswer(View):
    jsonrpc: str = "2.0"
    id: str | int | None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


@router.post("/{run_id}/mcp", operation_id="mcp_of_run", response_model=McpAnswer)
async def mcp_of_run(
    run_id: str, body: McpMessage, request: Request, caller: RunsDrive, state: State, secret: Secret
) -> Response:
    """Take one MCP message: ``initialize``, ``ping``, ``tools/list``, ``tools/call``; notifications are answered 202.

    Needs the same headers as the other calls: the bearer token, and ``Workstead-Lease`` for ``tools/call``.
    """
    del request
    async with state.db.reading() as tx:
        run = await remote_run(tx, caller, run_id)
        task = await tasks.get(tx, caller.project_id, run.task_id)
        screen = await has_screen(tx, run)
    if body.id is None:
        return Response(status_code=202)
    if body.method == "initialize":
        result = _initialized(body.params, "" if task is None else task.manifest.instruction)
    elif body.method == "ping":
        result = {}
    elif body.method == "tools/list":
        asks = task is not None and task.manifest.client is not None and run.driver is Driver.REMOTE
        result = {"tools": described(client=asks, screen=screen)}
    elif body.method == "tools/call":
        return _answer(body, *await _called(Driven(state, caller, run_id, secret), body.params))
    else:
        return _answer(body, None, _error(_METHOD_UNKNOWN, f"no method {clean(body.method, 100)}"))
    return _answer(body, result, None)


def _initialized(params: dict[str, Any], instruction: str) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "workstead-run", "version": "1"},
        "instructions": instruction,
    }


async def _called(driven: Driven, params: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the result, or the error. What goes wrong in a tool is a result: its reader is a model."""
    tool = TOOLS.get(str(params.get("name")))
    if tool is None:
        return None, _error(_BAD_PARAMS, f"no tool {clean(str(params.get('name')), 100)}")
    given = cast("object", params.get("arguments") or {})
    try:
        said = await tool.do(driven, tool.parse(given))
    except Expected as error:
        text = f"{error.type}: {error.detail}" if error.detail else error.type
        return {"content": [{"type": "text", "text": text}], "isError": True}, None
    return {"content": said.content, "structuredContent": said.data, "isError": said.is_error}, None


def _error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _answer(body: McpMessage, result: dict[str, Any] | None, error: dict[str, Any] | None) -> Response:
    said = {"result": result} if error is None else {"error": error}
    return answer(_Sent(jsonrpc="2.0", id=body.id, **said))


class _Sent(BaseModel):
    """Only what is set: JSON-RPC forbids a result beside an error."""

    model_config = ConfigDict(extra="allow")

    jsonrpc: str
    id: str | int | None

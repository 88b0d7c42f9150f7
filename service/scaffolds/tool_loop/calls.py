"""One tool call: from what the model asked to what it is told. Everything that goes wrong inside is a result."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from service.domain.errors import Expected, Invalid
from service.domain.events import EventType
from service.models.messages import GatewayAway, Image, ToolCall, ToolResult
from service.sandboxes.contract import ToolFailed
from service.scaffolds.contract import PlanContext, Translated
from service.scaffolds.loops import LoopJob
from service.scaffolds.media.asking import MediaError
from service.scaffolds.tool_loop import media, tools
from service.scaffolds.tool_loop.images import media_type
from service.scaffolds.tool_loop.schema import Tool, problem
from service.scaffolds.tool_loop.servers.offered import Servers

OUTPUT_BYTES = 30_000
"""Of a command's output, half of it from the beginning, half from the end."""
ANSWER_BYTES = 4 << 20
SLACK_S = 20.0
"""What the helper inside has beyond the tool's own time."""
PAGE_CHARS = 50_000
_NO_PYTHON = "no_such_program"


class NoPython(Exception):
    """The environment has no ``python3``: none of the tools can work."""


@cache
def helper() -> str:
    return (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")


def offered(job: LoopJob, default: Sequence[str] | None = None) -> dict[str, Tool]:
    """Return the tools of this job: ``settings.tools`` chooses among those of the sandbox (null: as ``default``, all)."""
    chosen = job.context.settings.further.get("tools", default)
    names = [n for n in tools.SANDBOX if chosen is None or n in chosen]
    found = {name: tools.SANDBOX[name] for name in names}
    for service, tool in tools.SERVICES.items():
        if job.services is not None and service in job.services.names:
            found[tool.spec.name] = tool
    if job.client is not None:
        found["message_client"] = tools.MESSAGE_CLIENT
    return found


def check_tools(context: PlanContext) -> None:
    """Refuse ``settings.tools`` that are none. Raises Invalid ``unknown_tool``."""
    chosen = context.settings.further.get("tools")
    if chosen is None:
        return
    names = cast("list[Any]", chosen) if isinstance(chosen, list) else [chosen]
    unknown = [str(name) for name in names if name not in tools.NAMES]
    if unknown or not names:
        detail = f"settings.tools: a list of names among {', '.join(tools.SANDBOX)}"
        raise Invalid("unknown_tool", detail, tools=unknown)


class Calls:
    """Performs the calls of one job."""

    def __init__(self, job: LoopJob, offered: Mapping[str, Tool]) -> None:
        self.job = job
        self.offered = dict(offered)
        self._messages = 0
        self._servers: Servers | None = None

    async def prepare(self) -> None:
        """Ask the agent's MCP servers which tools they have. Raises as :meth:`perform`."""
        self._servers = await Servers.open(self.job)
        self.offered |= self._servers.tools

    def alone(self, call: ToolCall) -> bool:
        """Tell whether the call changes something, so that its order matters."""
        tool = self.offered.get(call.name)
        return tool is not None and tool.alone

    async def perform(self, call: ToolCall, key: str) -> ToolResult:
        """Do it once, whatever happens to this process. ``key`` tells it from all other calls of the attempt.

        Raises LauncherLost, GatewayAway, NoPython, FenceLost, Unavailable, JournalFull.
        """
        wrong = self._wrong(call)
        said = None
        if call.name == "message_client" and wrong is None:
            # Asked for also when the result is known: the client's own journal rebuilds its memory by it.
            said = await self._message(call.arguments or {})

        async def act() -> dict[str, Any]:
            if wrong is not None:
                return _failed(wrong)
            return said or await self._act(call.name, call.arguments or {}, key)

        value = await self.job.journal.step("tool", key, act, lambda found: told(call, found))
        images = [Image.model_validate(image) for image in value.get("images", ())]
        return ToolResult(id=call.id, name=call.name, text=value["text"], is_error=value["is_error"], images=images)

    def _wrong(self, call: ToolCall) -> str | None:
        tool = self.offered.get(call.name)
        if tool is None:
            return f"there is no tool {call.name[:80]!r}; the tools are: {', '.join(self.offered)}"
        if call.arguments is None:
            return f"the arguments are no JSON object: {call.raw[:200]}"
        if self._servers is not None and call.name in self._servers.tools:
            return None  # the server knows its own schema
        return problem(tool.spec.parameters, call.arguments)

    async def _act(self, name: str, arguments: Mapping[str, Any], key: str) -> dict[str, Any]:
        if name in ("web_search", "web_fetch"):
            return await self._web(name, arguments)
        if name in media.NAMES:
            return await self._media(name, arguments)
        if self._servers is not None and name in self._servers.tools:
            return await self._servers.call(name, arguments, key)
        return await self._inside(name, arguments, key)

    async def _inside(self, name: str, arguments: Mapping[str, Any], key: str) -> dict[str, Any]:
        asked = arguments.get("timeout_s") or tools.DEFAULT_TIMEOUT_S
        timeout_s = min(max(1, int(asked)), tools.MAX_TIMEOUT_S)
        request = {**arguments, "tool": name, "timeout_s": timeout_s, "limit_bytes": OUTPUT_BYTES}
        try:
            done = await self.job.shell.exec(
                ["python3", "-I", "-c", helper()],
                call_id=key,
                stdin=json.dumps(request).encode(),
                timeout_s=timeout_s + SLACK_S,
                limit_bytes=ANSWER_BYTES,
            )
        except ToolFailed as error:
            if error.type == _NO_PYTHON:
                raise NoPython from error
            return _failed(f"the call could not be done: {error.detail or error.type}")
        return _read(name, done.stdout, done.stderr)

    async def _message(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        client = self.job.client
        assert client is not None
        self._messages += 1
        if self._messages > client.max_messages:
            return _failed(f"the client answers no more: all {client.max_messages} messages are used")
        given = cast("list[Any]", arguments.get("attachments") or [])
        found = [cast("dict[str, Any]", one) for one in given if isinstance(one, dict)]
        attachments = {str(one.get("name", "")): str(one.get("content", "")) for one in found}
        reply = await client.reply(self._messages, str(arguments["text"]), attachments)
        return _done(f"{reply.text}\n\n[{reply.left} messages to the client left]")

    async def _media(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _done(_cut(await media.perform(self.job, name, arguments)))
        except MediaError as error:
            return _failed(f"{error.type}: {error}")

    async def _web(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        services = self.job.services
        assert services is not None
        service, query = ("search", {"q": str(arguments.get("query", ""))}) if name == "web_search" else (
            "fetch", {"url": str(arguments.get("url", ""))}
        )  # fmt: skip
        if "count" in arguments:
            query["count"] = str(min(max(1, int(arguments["count"])), 50))
        try:
            status, text = await services.call(service, "", query)
        except (GatewayAway, Expected) as error:
            return _failed(f"{service} does not answer ({error.type})")
        return _done(_cut(text)) if status < 400 else _failed(f"status {status}: {text[:2000]}")


def _cut(text: str) -> str:
    return text if len(text) <= PAGE_CHARS else f"{text[:PAGE_CHARS]}\n[cut: {len(text)} characters in all]"


def _read(name: str, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    """Read what the helper said: the sandbox's word, so anything may stand there."""
    try:
        found: Any = json.loads(stdout)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        said = stderr.decode(errors="replace")[-2000:]
        return _failed(f"the call was cut off before it had a result\n{said}".rstrip())
    said = cast("dict[str, Any]", found)
    text = str(said.get("text", ""))[: 2 * OUTPUT_BYTES + 1000] if "code" in said else str(said.get("text", ""))
    if said.get("ok") is not True:
        return _failed(text)
    if "code" in said:
        return _ended(said, text)
    return _image(said, text) if name == "view_image" else _done(text)


def _ended(said: Mapping[str, Any], text: str) -> dict[str, Any]:
    notes: list[str] = []
    code = said.get("code")
    if said.get("timed_out"):
        notes.append("killed: its time was over")
    elif code != 0:
        notes.append(f"exit code {code}")
    if said.get("background"):
        notes.append("programs go on in the background")
    body = text if text.strip() else "(no output)"
    shown = body + (f"\n[{'; '.join(notes)}]" if notes else "")
    value = _done(shown) if code == 0 and not said.get("timed_out") else _failed(shown)
    return {**value, "bytes": said.get("bytes"), "code": code}


def _image(said: Mapping[str, Any], text: str) -> dict[str, Any]:
    data = str(said.get("image", ""))
    kind = media_type(data)
    if kind is None:
        return _failed(f"not an image that can be shown: {text}")
    return {**_done(f"{text}, {kind}"), "images": [{"media_type": kind, "data": data}]}


def _done(text: str) -> dict[str, Any]:
    return {"text": text, "is_error": False}


def _failed(text: str) -> dict[str, Any]:
    return {"text": text, "is_error": True}


def told(call: ToolCall, value: Mapping[str, Any]) -> Sequence[Translated]:
    payload = {"id": call.id, "name": call.name, "output": value["text"], "is_error": value["is_error"]}
    payload |= {key: value[key] for key in ("bytes", "code") if key in value}
    return [Translated(EventType.TOOL_RESULT, payload)]

"""The tools of a run's MCP server: the actions of a remote driver, with schemas made from the same models."""

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.api.client_messages import MessageRequest, send_message
from service.api.drive_actions import ExecRequest, execute, list_files, read_file, write_file
from service.api.driving import Driven
from service.api.finishing import FinishRequest, finish
from service.api.mcp_contract import Answered, Tool
from service.api.mcp_desktop import DESKTOP_TOOLS
from service.domain.errors import Invalid
from service.domain.limits import MIB

MAX_TEXT = 2 * MIB
"""Most bytes of a file that a tool returns: a model reads no more, and files have a route of their own."""
Path = Annotated[str, Field(min_length=1, max_length=1024)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ReadArguments(_Arguments):
    path: Path
    """Below the workspace."""
    encoding: Literal["utf-8", "base64"] = "utf-8"


class WriteArguments(_Arguments):
    path: Path
    """Below the workspace; parents are made."""
    content: Annotated[str, Field(max_length=3 * MIB)]
    encoding: Literal["utf-8", "base64"] = "utf-8"
    executable: bool = False


class ListArguments(_Arguments):
    path: Annotated[str, Field(max_length=1024)] = ""
    """A folder below the workspace; empty: the workspace itself."""


async def _exec(driven: Driven, given: ExecRequest) -> Answered:
    done = await execute(driven, given)
    ending = f"exit code {done.code}" if done.signal is None else f"signal {done.signal}"
    notes = [ending, *(["timed out"] if done.timed_out else []), *(["output cut"] if done.truncated else [])]
    text = "\n".join(part for part in (done.stdout, done.stderr, f"[{', '.join(notes)}]") if part)
    return Answered(text, done.model_dump(mode="json"), done.code != 0)


async def _read(driven: Driven, given: ReadArguments) -> Answered:
    data = await read_file(driven, given.path)
    if len(data) > MAX_TEXT:
        raise Invalid("file_too_large", f"{len(data)} bytes; a tool returns at most {MAX_TEXT}")
    text = base64.b64encode(data).decode() if given.encoding == "base64" else data.decode(errors="replace")
    return Answered(text, {"path": given.path, "size_bytes": len(data), "encoding": given.encoding})


async def _write(driven: Driven, given: WriteArguments) -> Answered:
    try:
        data = base64.b64decode(given.content, validate=True) if given.encoding == "base64" else given.content.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Invalid("bad_arguments", f"content: {error}") from error
    written = await write_file(driven, given.path, data, executable=given.executable)
    return Answered(f"wrote {written.size_bytes} bytes", written.model_dump(mode="json"))


async def _list(driven: Driven, given: ListArguments) -> Answered:
    found = await list_files(driven, given.path)
    lines = [f"{e.kind}\t{e.size_bytes}\t{e.name}" for e in found.data]
    return Answered("\n".join(lines) or "(empty)", found.model_dump(mode="json"))


async def _finish(driven: Driven, given: FinishRequest) -> Answered:
    async with driven.state.db.transaction() as tx:
        await driven.hold(tx)
        await finish(tx, driven.run_id, driven.secret, given)
    return Answered("the run ends; its deliverable is collected and graded", {"status": given.status})


async def _message(driven: Driven, given: MessageRequest) -> Answered:
    reply = await send_message(driven, given)
    return Answered(f"{reply.text}\n\n[{reply.left} messages to the client left]", reply.model_dump(mode="json"))


CLIENT = "message_client"
TOOLS = {
    "exec": Tool("Run a program in the sandbox and wait for its end.", ExecRequest, _exec),
    "read_file": Tool("Read a file of the workspace.", ReadArguments, _read),
    "write_file": Tool("Write a file of the workspace.", WriteArguments, _write),
    "list_files": Tool("List a folder of the workspace.", ListArguments, _list),
    **DESKTOP_TOOLS,
    CLIENT: Tool("Ask the client who posted the task; only so many messages are answered.", MessageRequest, _message),
    "finish": Tool("End the run when the work is done. Nothing can be done afterwards.", FinishRequest, _finish),
}


def described(*, client: bool, screen: bool) -> list[dict[str, Any]]:
    """Return the tools as ``tools/list`` has them; ``client``: whether there is one to ask; ``screen``: the same."""
    left_out = {*(() if client else (CLIENT,)), *(() if screen else DESKTOP_TOOLS)}
    return [
        {"name": name, "description": tool.description, "inputSchema": tool.arguments.model_json_schema()}
        for name, tool in TOOLS.items()
        if name not in left_out
    ]

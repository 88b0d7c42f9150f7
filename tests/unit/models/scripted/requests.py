"""Requests as the programs send them, reduced to what the script looks at."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Calls = Sequence[str]
"""Ids of the calls that were made and answered."""
BASH: Json = {
    "type": "object", "required": ["command", "description"],
    "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
}  # fmt: skip
WRITE: Json = {
    "type": "object", "required": ["file_path", "content"],
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
}  # fmt: skip


def messages(calls: Calls = (), *, tools: bool = True, user: str = "Do it", stream: bool = True) -> Json:
    turns: list[Json] = []
    for id_ in calls:
        turns.append({"role": "assistant", "content": [{"type": "tool_use", "id": id_, "name": "Bash", "input": {}}]})
        turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "ok"}]})
    said: list[Json] = [{"role": "user", "content": user}]
    body: Json = {"model": "claude-x", "stream": stream, "max_tokens": 100, "messages": said + turns}
    offered = [{"name": "Bash", "input_schema": BASH}, {"name": "Write", "input_schema": WRITE}]
    return body | ({"tools": offered} if tools else {})


def chat(calls: Calls = (), *, tools: Mapping[str, Json] | None = None, user: str = "Do it", **more: Any) -> Json:
    turns: list[Json] = [{"role": "user", "content": user}]
    for id_ in calls:
        turns.append(
            {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": {"name": "bash"}}]}
        )
        turns.append({"role": "tool", "tool_call_id": id_, "content": "ok"})
    offered = [
        {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in (tools or {}).items()
    ]
    return {"model": "gpt-x", "messages": turns, "tools": offered, **more}


def responses(calls: Calls = (), *, tools: Sequence[Json] = (), late: bool = False) -> Json:
    entries: list[Json] = [{"type": "additional_tools", "role": "developer", "tools": list(tools)}] if late else []
    entries.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it"}]})
    for id_ in calls:
        entries.append({"type": "function_call", "call_id": id_, "name": "exec_command", "arguments": "{}"})
        entries.append({"type": "function_call_output", "call_id": id_, "output": "ok"})
    return {"model": "gpt-x", "stream": True, "input": entries, "tools": [] if late else list(tools)}


def gemini(answered: int = 0) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": "Do it"}]}]
    for _ in range(answered):
        contents.append({"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {}}}]})
        result = {"name": "run_shell_command", "response": {"output": "ok"}}
        contents.append({"role": "user", "parts": [{"functionResponse": result}]})
    declared = [
        {"name": "run_shell_command", "parametersJsonSchema": BASH}, {"name": "write_file", "parametersJsonSchema": WRITE}
    ]  # fmt: skip
    return {"contents": contents, "tools": [{"functionDeclarations": declared}]}


def data_of(frames: bytes) -> list[Any]:
    """Return the JSON of each frame."""
    lines = [line.removeprefix("data: ") for line in frames.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]

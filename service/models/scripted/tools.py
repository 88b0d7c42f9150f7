"""From a scenario's action to a call of a tool that the agent at hand offers."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from service.models.scripted.conversation import Offer, Request, Use
from service.models.scripted.fill import filled
from service.models.scripted.scenario import Action, FileText
from service.models.scripted.values import mapping

_SHELLS = (
    "Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "terminal", "execute_bash", "exec",
    "run_command", "run",
)  # fmt: skip
_WRITERS = (
    "Write", "write_file", "write", "file_editor", "str_replace_editor", "str_replace_based_edit_tool", "create_file",
)  # fmt: skip
_COMMANDS = ("command", "cmd", "script", "code", "input")
_PATHS = ("file_path", "filePath", "absolute_path", "path", "filename")
_TEXTS = ("content", "file_text", "contents", "text")
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def use(action: Action, request: Request, id_: str) -> Use | None:
    """Return the call that ``action`` becomes; None: no offered tool can do it, or it is text."""
    if action.call is not None:
        return _named(action.call.name, action.call.arguments, request, id_)
    if action.run is not None:
        return run(action.run, request, id_)
    return _write(action.write, request, id_) if action.write is not None else None


def run(command: str, request: Request, id_: str) -> Use | None:
    """Return a call of the agent's shell tool."""
    if request.code_mode:
        return _javascript(f"tools.exec_command({json.dumps({'cmd': command})})", id_)
    if (offer := _first(_SHELLS, request.offers)) is None:
        return None
    if offer.kind == "custom":
        return Use(id_, offer.name, command, custom=True)
    name = _property(_COMMANDS, offer.schema)
    listed = mapping(mapping(offer.schema.get("properties")).get(name)).get("type") == "array"
    return Use(id_, offer.name, filled(offer.schema, {name: ["bash", "-lc", command] if listed else command}))


def finish(text: str, request: Request, id_: str) -> Use | None:
    """Return the call by which the agent at hand ends; None: it ends with a text."""
    if request.submit_by_command:
        return run(f"echo {SUBMIT}", request, id_)
    if (offer := _first(("finish",), request.offers)) is None:
        return None
    return Use(id_, offer.name, filled(offer.schema, {"message": text}))


def _named(name: str, arguments: dict[str, Any] | str, request: Request, id_: str) -> Use:
    offer = _first((name,), request.offers)
    if isinstance(arguments, str) or offer is None:
        return Use(id_, name, arguments, custom=offer is not None and offer.kind == "custom")
    return Use(id_, name, filled(offer.schema, arguments))


def _write(file: FileText, request: Request, id_: str) -> Use | None:
    patch = _patch(file)
    if request.code_mode:
        return run(_by_shell(file), request, id_)
    if (offer := _first(("apply_patch",), request.offers)) is not None:
        if offer.kind == "custom":
            return Use(id_, offer.name, patch, custom=True)
        return Use(
            id_, offer.name, filled(offer.schema, {_property(("input", "patch", "patchText"), offer.schema): patch})
        )
    if (offer := _first(_WRITERS, request.offers)) is None:
        return run(_by_shell(file), request, id_)
    given = {_property(_PATHS, offer.schema): file.path, _property(_TEXTS, offer.schema): file.text}
    if "command" in mapping(offer.schema.get("properties")):
        given["command"] = "create"
    return Use(id_, offer.name, filled(offer.schema, given))


def _javascript(call: str, id_: str) -> Use:
    code = f'const r = await {call};\ntext(typeof r === "string" ? r : JSON.stringify(r));\n'
    return Use(id_, "exec", code, custom=True)


def _patch(file: FileText) -> str:
    lines = "".join(f"+{line}\n" for line in file.text.splitlines())
    return f"*** Begin Patch\n*** Add File: {file.path}\n{lines}*** End Patch\n"


def _by_shell(file: FileText) -> str:
    return f"printf %s {shlex.quote(file.text)} > {shlex.quote(file.path)}"


def _first(names: Sequence[str], offers: Sequence[Offer]) -> Offer | None:
    by_name = {offer.name: offer for offer in reversed(offers)}
    return next((by_name[name] for name in names if name in by_name), None)


def _property(names: Sequence[str], schema: Mapping[str, Any]) -> str:
    properties = mapping(schema.get("properties"))
    return next((name for name in names if name in properties), names[0])

"""A small agent that speaks the Agent Client Protocol, for sandboxes: standard library only; its last argument says what
it does wrong. What it asks the gateway is not its matter here: it writes the right answer by itself."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

HOW = sys.argv[-1]
READ = {"toolCallId": "call-1", "title": "Read input.csv", "kind": "read"}
WRITE = {"toolCallId": "call-2", "title": "Write answers.json", "kind": "edit"}
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
COMMANDS = {"fs": "fs/read_text_file", "terminal": "terminal/create"}


def say(**body: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **body}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def update(what: str, **body: Any) -> None:
    say(method="session/update", params={"sessionId": "s-1", "update": {"sessionUpdate": what, **body}})


def talk(text: str, kind: str = "agent_message_chunk") -> None:
    for piece in text:
        update(kind, content={"type": "text", "text": piece})


def asked(method: str, **params: Any) -> dict[str, Any]:
    say(id=f"a-{method}", method=method, params={"sessionId": "s-1", **params})
    return hear()


def refused(request: dict[str, Any], code: int, message: str) -> None:
    say(id=request["id"], error={"code": code, "message": message, "data": {"why": "so"}})


def initialize(request: dict[str, Any]) -> None:
    if HOW == "mute":
        time.sleep(600)
    if HOW == "rubbish":
        print("What a nice day!\n" * 3000, flush=True)
    if HOW == "long":
        print("x" * (17 << 20), flush=True)
        time.sleep(600)
    print("[info] ready", flush=True)  # what programs do, and what is no end
    version = 7 if HOW == "version" else request["params"]["protocolVersion"]
    say(id=request["id"], result={"protocolVersion": version, "agentCapabilities": {}, "authMethods": []})


def new_session(request: dict[str, Any]) -> None:
    if HOW == "sign-in":
        return refused(request, -32000, "Sign in first")
    assert request["params"]["cwd"] == str(Path.cwd())
    options: list[Any] = [
        {"id": "the-model", "category": "model", "type": "select", "currentValue": "x", "options": []}
    ]
    say(id=request["id"], result={"sessionId": "s-1", "configOptions": options})
    return None


def prompt(request: dict[str, Any]) -> None:
    if HOW == "crash":
        talk("I am abou")
        os.kill(os.getpid(), signal.SIGSEGV)
    if HOW == "error":
        return refused(request, -32603, "Internal error")
    if HOW == "silent":
        return say(id=request["id"], result={"stopReason": "end_turn"})
    if HOW in ("endless", "deaf", "polite"):
        return wait_for_cancel(request)
    talk("I think", "agent_thought_chunk")
    talk("I read it. ✓")
    for name, method in COMMANDS.items():
        update(
            "plan", entries=[{"content": f"try {name}", "priority": "low", "status": asked(method)["error"]["message"]}]
        )
    update("tool_call", **READ, status="pending", rawInput={})
    update("tool_call_update", toolCallId="call-1", status="in_progress", rawInput={"path": "input.csv"})
    text = {"type": "content", "content": {"type": "text", "text": Path("input.csv").read_text()}}
    update("tool_call_update", toolCallId="call-1", status="completed", content=[text])
    write()
    talk(request["params"]["prompt"][0]["text"][:7])
    usage = {"inputTokens": 100, "cachedReadTokens": 20, "outputTokens": 9, "thoughtTokens": 3, "totalTokens": 132}
    stop = HOW if HOW in ("refusal", "max_tokens", "max_turn_requests") else "end_turn"
    say(id=request["id"], result={"stopReason": stop, "usage": usage})
    return None


def write() -> None:
    """The call is told of in the question about it only."""
    answer = asked("session/request_permission", toolCall={**WRITE, "rawInput": {"to": "answers"}}, options=OPTIONS)
    chosen = answer["result"]["outcome"]
    if chosen == {"outcome": "selected", "optionId": "yes"}:
        Path("output/answers.json").write_text(json.dumps({"total": 42, "name": "Zürich"}))
    status = "completed" if chosen.get("optionId") == "yes" else "failed"
    update("tool_call_update", toolCallId="call-2", status=status, rawOutput={"chosen": chosen})


def wait_for_cancel(request: dict[str, Any]) -> None:
    update("tool_call", **READ, status="in_progress", rawInput={"path": "input.csv"})
    if HOW == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    assert hear()["method"] == "session/cancel"
    say(id=request["id"], result={"stopReason": "end_turn" if HOW == "polite" else "cancelled"})


def select(request: dict[str, Any]) -> None:
    if HOW == "no-mode":
        return refused(request, -32602, "no such mode")
    say(id=request["id"], result={})
    return None


DO = {
    "initialize": initialize, "session/new": new_session, "session/prompt": prompt, "session/set_mode": select,
    "session/set_config_option": select,
}  # fmt: skip

if __name__ == "__main__":
    while True:
        it = hear()
        print(json.dumps(it), file=sys.stderr, flush=True)
        DO[it["method"]](it)

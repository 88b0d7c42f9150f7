"""A client of the Agent Client Protocol inside the sandbox: starts an agent, gives it one prompt, writes down what is said.

Ships as a file into images that we do not know: the standard library of Python 3.9, nothing around it. The job comes as
JSON on standard input. Each line of standard output is one object: ``{"acp": "agent", "message": …}`` as the agent said
it, ``permission`` (what it asked and was answered), ``noise`` (a line that is no message) and at last ``end``. It is the
agent's domain: what it says is data for the reader outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any, cast

VERSION = 1
LINE_BYTES = 15 << 20
MOST_NOISE = 1000
"""Lines that are no message, until the program is taken for none that speaks the protocol."""
MOST_KNOWN = 10_000
LEAVE_S = 2.0
METHOD_NOT_FOUND, AUTH_REQUIRED = -32601, -32000
ORDERLY = ("end_turn", "max_turn_requests")


class Failed(Exception):
    """The session ended without an answer to the prompt."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail[:2000]


class Refused(Exception):
    """The agent answered a request with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.code = error.get("code")
        data = error.get("data")
        self.detail = str(self) if data is None else "%s: %s" % (self, json.dumps(data)[:1500])


def obj(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    return [obj(one) for one in cast("list[Any]", value)] if isinstance(value, list) else []


def write(what: str, **body: Any) -> None:
    sys.stdout.buffer.write(json.dumps({"acp": what, **body}).encode() + b"\n")
    sys.stdout.buffer.flush()


def decide(policy: dict[str, Any], kind: str, options: list[dict[str, Any]]) -> tuple[str, str | None]:
    """Return allow, deny or cancelled, and the option that says so: once rather than for good, so that each is asked."""
    wanted = policy["by_kind"].get(kind, policy["default"])
    word = "allow" if wanted == "allow" else "reject"
    by_kind = {str(o.get("kind")): o.get("optionId") for o in reversed(options)}
    for name in (word + "_once", word + "_always"):
        option = by_kind.get(name)
        if isinstance(option, str):
            return wanted, option
    return "cancelled", None


class Agent:
    """The program, as the other side of the connection."""

    def __init__(self, job: dict[str, Any], child: asyncio.subprocess.Process) -> None:
        self.job, self.child = job, child
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.kinds: dict[str, str] = {}
        self.n = self.noise = 0
        self.broken: Failed | None = None

    async def ask(self, method: str, params: dict[str, Any], timeout_s: float | None) -> dict[str, Any]:
        """Raises Failed, Refused."""
        if self.broken is not None:
            raise self.broken
        self.n += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting[self.n] = answer
        self.send({"id": self.n, "method": method, "params": params})
        try:
            found = await asyncio.wait_for(answer, timeout_s)
        except asyncio.TimeoutError:
            raise Failed("no_answer", "%s was not answered in %g s" % (method, timeout_s or 0)) from None
        return obj(found)

    def send(self, body: dict[str, Any]) -> None:
        # Not waited for: what we say is short but for the prompt, and a program that reads nothing shows elsewhere.
        if self.child.stdin is not None and not self.child.stdin.is_closing():
            self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")

    async def read(self) -> None:
        """Take what it says until it ends; then nobody waits for an answer any more."""
        try:
            await self.read_lines()
        except Failed as error:
            self.broken = error
        finally:
            # Also if it is this reader that failed: nobody may wait for ever.
            self.broken = self.broken or Failed("client_failed", "the client inside failed; see standard error")
            for answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(self.broken)
            self.waiting.clear()

    async def read_lines(self) -> None:
        assert self.child.stdout is not None
        while True:
            try:
                line = await self.child.stdout.readline()
            except ValueError:
                raise Failed("line_too_long", "a line has more than %d bytes" % LINE_BYTES) from None
            if not line:
                code = await self.ended()
                raise Failed("agent_ended", "the program ended (%s) before it had answered" % code)
            self.take(line)

    async def ended(self) -> str:
        try:
            return "exit code %d" % await asyncio.wait_for(self.child.wait(), LEAVE_S)
        except asyncio.TimeoutError:
            return "its standard output only"

    def take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        found = obj(message)
        if not found:
            if line.strip():
                self.take_noise(line)
            return
        write("agent", message=found)
        if "method" not in found:
            self.take_answer(found)
        elif "id" in found:
            self.take_request(found)
        else:
            self.take_update(obj(obj(found.get("params")).get("update")))

    def take_update(self, update: dict[str, Any]) -> None:
        """A later question about a call need not say again of which kind it is."""
        if update.get("kind") is not None and len(self.kinds) < MOST_KNOWN:
            self.kinds[str(update.get("toolCallId"))] = str(update["kind"])

    def take_noise(self, line: bytes) -> None:
        self.noise += 1
        write("noise", text=line.decode("utf-8", "replace").rstrip("\r\n"))
        if self.noise > MOST_NOISE:
            raise Failed("garbage", "%d lines of standard output are no messages" % self.noise)

    def take_answer(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        answer = self.waiting.pop(id_, None) if isinstance(id_, int) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is not None:
            answer.set_exception(Refused(obj(error)))
        else:
            answer.set_result(message.get("result"))

    def take_request(self, message: dict[str, Any]) -> None:
        assert self.child.stdin is not None
        if self.child.stdin.transport.get_write_buffer_size() > LINE_BYTES:
            raise Failed("agent_deaf", "the program asks and does not read the answers")
        if message["method"] != "session/request_permission":
            error = {"code": METHOD_NOT_FOUND, "message": "this client offers no such thing"}
            self.send({"id": message["id"], "error": error})
            return
        params = obj(message.get("params"))
        call = obj(params.get("toolCall"))
        kind = str(call.get("kind") or self.kinds.get(str(call.get("toolCallId"))) or "other")
        decision, option = decide(self.job["permissions"], kind, objects(params.get("options")))
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        said = {"id": call.get("toolCallId"), "title": call.get("title"), "kind": kind}
        write("permission", **said, decision=decision, option=option)
        self.send({"id": message["id"], "result": {"outcome": outcome}})

    async def leave(self) -> None:
        """Close its input and, if that does not end it, kill it and what it started."""
        if self.child.stdin is not None:
            self.child.stdin.close()
        ended = asyncio.ensure_future(self.child.wait())
        for number in (signal.SIGTERM, signal.SIGKILL):
            if (await asyncio.wait({ended}, timeout=LEAVE_S))[0]:
                return
            with contextlib.suppress(OSError):
                os.killpg(self.child.pid, number)
        await ended


class Session:
    """One prompt, from the first word to the last."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.job = agent, agent.job
        self.id: str | None = None
        self.stopped = asyncio.Event()

    async def answer(self) -> dict[str, Any]:
        """Raises Failed."""
        talk = asyncio.ensure_future(self.talk())
        stop = asyncio.ensure_future(self.stopped.wait())
        await asyncio.wait({talk, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not talk.done():
            if self.id is not None:
                self.agent.send({"method": "session/cancel", "params": {"sessionId": self.id}})
                await asyncio.wait({talk}, timeout=self.job["cancel_s"])
            if not talk.done():
                talk.cancel()
                await asyncio.wait({talk})
                raise Failed("stopped", "it was stopped, and did not end by itself")
        stop.cancel()
        answer = talk.result()
        # Some agents call a turn that was broken off an end like any other.
        return {**answer, "stopReason": "cancelled"} if self.stopped.is_set() else answer

    async def talk(self) -> dict[str, Any]:
        await self.initialize()
        state = await self.step("session_refused", "session/new", {"cwd": os.getcwd(), "mcpServers": []})
        if not isinstance(state.get("sessionId"), str):
            raise Failed("session_refused", "the answer has no sessionId")
        self.id = state["sessionId"]
        await self.select(state)
        params = {"sessionId": self.id, "prompt": [{"type": "text", "text": self.job["prompt"]}]}
        return await self.step("prompt_failed", "session/prompt", params, forever=True)

    async def initialize(self) -> None:
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {
            "protocolVersion": VERSION, "clientCapabilities": capabilities,
            "clientInfo": {"name": "workstead", "title": "Workstead", "version": "1"},
        }  # fmt: skip
        said = await self.step("initialize_refused", "initialize", params)
        if said.get("protocolVersion") != VERSION:
            detail = "the agent speaks version %s; this client speaks %d" % (said.get("protocolVersion"), VERSION)
            raise Failed("protocol_version", detail)
        if self.job["auth_method"] is not None:
            await self.step("auth_required", "authenticate", {"methodId": self.job["auth_method"]})

    async def select(self, state: dict[str, Any]) -> None:
        """Ask for mode and model in the way that this agent offers."""
        for what in ("mode", "model"):
            if self.job[what] is None:
                continue
            method, params = "session/set_" + what, {what + "Id": self.job[what]}
            option = config_option(state, what)
            if option is not None:
                method, params = "session/set_config_option", {"configId": option, "value": self.job[what]}
            await self.step(what + "_refused", method, {"sessionId": self.id, **params})

    async def step(self, reason: str, method: str, params: dict[str, Any], forever: bool = False) -> dict[str, Any]:
        try:
            return await self.agent.ask(method, params, None if forever else self.job["start_s"])
        except Refused as error:
            raise Failed("auth_required" if error.code == AUTH_REQUIRED else reason, error.detail) from None


def config_option(state: dict[str, Any], category: str) -> str | None:
    for option in objects(state.get("configOptions")):
        if option.get("category") == category and isinstance(option.get("id"), str):
            return str(option["id"])
    return None


async def run(job: dict[str, Any]) -> int:
    try:
        child = await asyncio.create_subprocess_exec(
            *job["argv"], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        write("end", reason="not_started", detail="%s: %s" % (job["argv"][0], error))
        return 1
    agent = Agent(job, child)
    session = Session(agent)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, session.stopped.set)
    reading = asyncio.ensure_future(agent.read())
    try:
        answer = await session.answer()
        end: dict[str, Any] = {"reason": str(answer.get("stopReason")), "usage": answer.get("usage")}
    except Failed as error:
        end = {"reason": error.reason, "detail": error.detail}
    await agent.leave()
    reading.cancel()
    await asyncio.wait({reading})
    write("end", **end)
    if not reading.cancelled():
        reading.result()
    return 0 if end["reason"] in ORDERLY else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run(json.load(sys.stdin))))

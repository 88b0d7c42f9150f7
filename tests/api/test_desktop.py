"""A remote driver's screen over the API; the worker is scripted at the bridge, the rest is real."""

import asyncio
import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.api.bridge import BridgeClient, OnPiece, WorkerAway
from service.domain.run_states import AttemptState
from service.lifecycle.bridge_frames import Frame
from service.store import attempts, events, hosts
from service.store.rows import AttemptRow, HostRow
from tests.api.helpers import Tenant

PNG = b"\x89PNG\r\n\x1a\n"
STATE = {"width": 1280, "height": 800, "cursor_x": 5, "cursor_y": 6, "title": "Untitled 1", "settled": True}


@dataclass
class Worker(BridgeClient):
    """What a worker's bridge answers: every batch with pictures of the number of the call."""

    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    errors: dict[int, str] = field(default_factory=dict[int, str])
    """Index of an action → its error."""
    whole: str | None = None
    """Error of the next batch as a whole."""
    away: int = 0
    """So many calls find nobody."""
    gate: asyncio.Event | None = None
    """What calls wait for."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self,
        place: str,
        head: dict[str, Any],
        body: bytes = b"",
        *,
        seconds: float = 0.0,
        on_piece: OnPiece | None = None,
    ) -> Frame:
        self.asked.append(head)
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.away:
            self.away -= 1
            raise WorkerAway("nobody")
        if self.whole is not None:
            return Frame({"error": self.whole, "detail": "so it says", "results": [], "images": [], "state": None})
        return self._performed(head)

    def _performed(self, head: dict[str, Any]) -> Frame:
        batch = head["batch"]
        results: list[dict[str, Any]] = []
        pictures: list[tuple[str, bytes]] = [("before", PNG + b"before")] if head["before"] else []
        for n, action in enumerate(batch.get("actions", [])):
            error = self.errors.get(n)
            results.append({"index": n, "error": error, "detail": "no" if error else ""})
            if error:
                break
            if action["type"] in ("screenshot", "zoom"):
                results[-1]["image"] = sum(role == "action" for role, _ in pictures)
                pictures.append(("action", PNG + b"action %d" % n))
        if batch.get("shot") is not None:
            pictures.append(("shot", PNG + b"shot %d" % len(self.asked)))
        images = [
            {"role": role, "format": "png", "width": 1280, "height": 800, "bytes": len(data)} for role, data in pictures
        ]
        done = {"state": STATE, "results": results, "images": images, "took_s": 0.25, "error": None, "detail": ""}
        return Frame(done, b"".join(data for _, data in pictures))


@dataclass
class Driving:
    tenant: Tenant
    worker: Worker
    run_id: str
    attempt: AttemptRow
    lease: str = ""

    async def act(self, status: int = 200, **body: Any) -> Any:
        path = f"/v1/runs/{self.run_id}/desktop/actions"
        return await self.tenant.post(path, body, status, **{"Workstead-Lease": self.lease})

    async def events(self, *types: str) -> list[Any]:
        async with self.tenant.state.db.reading() as tx:
            return await events.read(tx, self.run_id, 0, 1000, types)


def host_of(tenant: Tenant) -> str:
    return f"host-of-{tenant.project_id}"


async def remote_run(tenant: Tenant, manifest: dict[str, Any] | None = None, **settings: Any) -> Driving:
    """A run of a remote driver that is running and claimed; its worker is scripted."""
    worker = tenant.state.bridge = Worker()
    scaffold = {"name": "loop", "version": "1", "kind": "remote", **(manifest or {})}
    assert (await tenant.client.post("/v1/scaffolds", json=scaffold)).status_code in (200, 201)
    agent = (await tenant.client.post("/v1/agents", json={"scaffold": "loop@1", "settings": settings})).json()
    task = (await tenant.client.post("/v1/tasks", json={"name": "t/one", "instruction": "work"})).json()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    async with tenant.state.db.transaction() as tx:
        host = HostRow(host_of(tenant), "epoch-1", 1000, ("runc",), ("base", "desktop"), facts={"bridge": "unix:/x"})
        await hosts.register(tx, host)
        claimed = await attempts.claim(tx, host, 1000)  # other tests have left some
        attempt = next(a for a in claimed if a.run_id == run["id"])
        attempt = await attempts.advance(tx, attempt, AttemptState.BOUND, sandbox_id="box", runtime="runc")
        attempt = await attempts.advance(tx, attempt, AttemptState.RUNNING, deadline_in_s=600)
    lease = await tenant.post(f"/v1/runs/{run['id']}/claim", {"holder": "x"})
    return Driving(tenant, worker, run["id"], attempt, lease["lease"])


@pytest.fixture
async def driving(tenant: Tenant) -> Driving:
    return await remote_run(tenant, surface="desktop")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def test_a_batch_is_done_recorded_and_shown(driving: Driving) -> None:
    click = {"type": "click", "x": 10, "y": 20, "intent": "press it"}
    acted = await driving.act(actions=[click, {"type": "screenshot"}], settle={"quiet_s": 1, "cap_s": 3}, call_id="one")
    (asked,) = driving.worker.asked
    assert (asked["call"], asked["call_id"], asked["fence"]) == ("desktop", "drv-one", driving.attempt.fence)
    assert asked["batch"]["actions"] == [{"type": "click", "x": 10, "y": 20}, {"type": "screenshot"}]
    assert asked["batch"]["settle"] == {"quiet_s": 1, "cap_s": 3}
    assert [r["index"] for r in acted["results"]] == [0, 1]
    assert acted["state"]["title"] == "Untitled 1"
    assert base64.b64decode(acted["screenshot"]["data_base64"]) == PNG + b"shot 1"
    assert acted["images"][0]["sha256"] == sha(PNG + b"action 1")
    called, done, said = await driving.events("tool.call", "desktop.action", "tool.result")
    assert (called.payload["name"], called.payload["arguments"]["actions"][0]["intent"]) == (
        "desktop_actions",
        "press it",
    )
    assert done.payload["id"] == said.payload["id"] == "one"
    assert (done.payload["by"], done.payload["title"]) == ("remote", "Untitled 1")
    assert done.payload["before"]["sha256"] == sha(PNG + b"before")
    assert done.payload["after"]["sha256"] == acted["screenshot"]["sha256"]
    assert (await driving.tenant.get(f"/v1/runs/{driving.run_id}"))["progress"]["tool_calls"] == 1


async def test_a_repeated_call_is_answered_from_the_record(driving: Driving) -> None:
    first = await driving.act(actions=[{"type": "screenshot"}], call_id="one")
    again = await driving.act(actions=[{"type": "screenshot"}], call_id="one")
    assert again == first
    assert len(driving.worker.asked) == 1
    assert len(await driving.events("desktop.action")) == 1


async def test_a_batch_that_a_worker_died_over_is_not_done_again(driving: Driving) -> None:
    driving.worker.gate = asyncio.Event()
    driving.worker.away = 1
    acting = asyncio.create_task(driving.act(actions=[{"type": "key", "keys": ["Return"]}], call_id="one"))
    await asyncio.wait_for(driving.worker.begun.wait(), 20)
    async with driving.tenant.state.db.transaction() as tx:
        taken = next(
            a for a in await attempts.takeover(tx, host_of(driving.tenant), "epoch-1") if a.run_id == driving.run_id
        )
    driving.worker.gate.set()
    acted = await asyncio.wait_for(acting, 20)
    assert (acted["error"], acted["results"]) == ("interrupted", [])
    assert acted["screenshot"]["sha256"] == sha(PNG + b"shot 2")
    first, after = driving.worker.asked
    assert (first["fence"], first["batch"]["actions"]) == (driving.attempt.fence, [{"type": "key", "keys": ["Return"]}])
    assert (after["fence"], after["batch"].get("actions", []), after["before"]) == (taken.fence, [], False)
    (done,) = await driving.events("desktop.action")
    assert (done.payload["interrupted"], done.payload["error"]) == (True, "interrupted")
    assert await driving.act(actions=[{"type": "key", "keys": ["Return"]}], call_id="one") == acted
    assert len(driving.worker.asked) == 2


async def test_a_client_that_asks_again_after_both_processes_died_learns_that_it_was_interrupted(
    driving: Driving,
) -> None:
    """The call is in the log, its result is not, and another worker holds the run."""
    driving.worker.gate = asyncio.Event()
    acting = asyncio.create_task(driving.act(actions=[{"type": "key", "keys": ["Return"]}], call_id="one"))
    await asyncio.wait_for(driving.worker.begun.wait(), 20)
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    async with driving.tenant.state.db.transaction() as tx:
        await attempts.takeover(tx, host_of(driving.tenant), "epoch-1")
    driving.worker.gate = None
    driving.worker.asked.clear()
    acted = await driving.act(actions=[{"type": "key", "keys": ["Return"]}], call_id="one")
    assert acted["error"] == "interrupted"
    assert [a["batch"].get("actions", []) for a in driving.worker.asked] == [[]]


async def test_the_error_of_an_action_is_a_result(driving: Driving) -> None:
    driving.worker.errors[0] = "unknown_key"
    acted = await driving.act(actions=[{"type": "key", "keys": ["Nokey"]}, {"type": "wait", "seconds": 1}])
    assert [(r["index"], r["error"]) for r in acted["results"]] == [(0, "unknown_key")]
    (said,) = await driving.events("tool.result")
    assert (said.payload["output"], said.payload["is_error"]) == ("unknown_key", True)


@pytest.mark.parametrize(
    ("error", "status", "type", "recorded"),
    [
        ("busy", 429, "busy", 0),
        ("too_large", 413, "batch_too_large", 0),
        ("desktop_lost", 409, "desktop_lost", 1),
        ("timed_out", 409, "timed_out", 1),
    ],
)
async def test_a_desktop_that_does_not_do_it(
    driving: Driving, error: str, status: int, type: str, recorded: int
) -> None:
    driving.worker.whole = error
    problem = await driving.act(status, actions=[{"type": "screenshot"}], call_id="one")
    assert problem["type"] == f"urn:workstead:problem:{type}"
    assert len(await driving.events("desktop.action")) == recorded
    driving.worker.whole = None
    if recorded:  # what was lost is not done again by asking again
        assert (await driving.act(status, actions=[{"type": "screenshot"}], call_id="one"))["type"] == problem["type"]
    else:
        assert (await driving.act(actions=[{"type": "screenshot"}], call_id="one"))["results"]


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"actions": [{"type": "screenshot"}] * 10_000}, "invalid_request"),
        ({"actions": [{"type": "click", "x": 5000, "y": 1}]}, "invalid_request"),
        ({"actions": [{"type": "type", "text": "x" * 70_000}]}, "invalid_request"),
        ({"actions": [{"type": "fly"}]}, "invalid_request"),
        ({"payload": {"action": "screenshot"}}, "invalid_request"),
        ({"vocabulary": "openai.computer"}, "invalid_request"),
        ({"vocabulary": "openai.computer", "payload": {}, "actions": [{"type": "screenshot"}]}, "invalid_request"),
        ({"vocabulary": "nobody's", "payload": {}}, "unknown_vocabulary"),
        ({"vocabulary": "openai.computer", "payload": {"action": {"type": "fly"}}}, "unknown_action"),
        ({"vocabulary": "openai.computer", "payload": {"action": {"type": "click", "x": 9999, "y": 1, "button": "left"}}}, "bad_action"),
        (
            {"vocabulary": "openai.computer", "payloads": [{"actions": [{"type": "wait"}] * 40}] * 2},
            "too_many_actions",
        ),
        ({"actions": [], "call_id": "../x"}, "invalid_request"),
    ],
)  # fmt: skip
async def test_what_cannot_be_meant_is_refused_before_anything_is_done(
    driving: Driving, body: dict[str, Any], type: str
) -> None:
    problem = await driving.act(422, **body)
    assert problem["type"] == f"urn:workstead:problem:{type}"
    assert not await driving.events("tool.call", "desktop.action")
    assert not [asked for asked in driving.worker.asked if asked["batch"].get("actions") or asked["before"]]


@pytest.mark.parametrize(
    ("vocabulary", "payload", "type"),
    [
        ("anthropic.20251124", {"action": "left_click", "coordinate": [320, 200]}, "click"),
        ("openai.computer", {"actions": [{"type": "click", "button": "left", "x": 320, "y": 200}]}, "click"),
        ("gemini.3_5", {"name": "click", "args": {"x": 500, "y": 500}}, "click"),
    ],
)
async def test_a_providers_own_words(driving: Driving, vocabulary: str, payload: dict[str, Any], type: str) -> None:
    """Coordinates count pixels of the picture that the model was sent, half as large as the screen."""
    await driving.act(vocabulary=vocabulary, payload=payload, image={"width": 640, "height": 400})
    (action,) = driving.worker.asked[-1]["batch"]["actions"]
    assert (action["type"], abs(action["x"] - 640) <= 1, abs(action["y"] - 400) <= 1) == (type, True, True)
    assert "raw" not in action
    (done,) = await driving.events("desktop.action")
    (written,) = done.payload["actions"]
    assert (written["raw"]["vocabulary"], bool(written["raw"]["payload"])) == (vocabulary, True)


async def test_words_that_the_scaffold_brings(tenant: Tenant) -> None:
    point = {"to": "point", "argument": "position"}
    golden = {
        "payload": {"name": "tap", "args": {"position": [500, 500]}},
        "actions": [{"type": "click", "x": 640, "y": 400}],
    }
    words = {"name": "acme.1", "coordinates": "thousandths", "action": "name", "arguments": "args",
             "actions": {"tap": {"type": "click", "take": [point]}}, "golden": [golden]}  # fmt: skip
    driving = await remote_run(tenant, {"vocabulary": words, "surface": "desktop"})
    payload = {"name": "tap", "args": {"position": [250, 250]}}
    for name in ("manifest", "acme.1"):
        await driving.act(vocabulary=name, payload=payload)
        (action,) = driving.worker.asked[-1]["batch"]["actions"]
        assert (action["type"], abs(action["x"] - 320) <= 1, abs(action["y"] - 200) <= 1) == ("click", True, True)


async def test_what_a_provider_wants_confirmed_is_said_and_recorded(driving: Driving) -> None:
    decision = {"decision": "require_confirmation", "explanation": "It buys something."}
    payload = {"name": "click", "args": {"x": 500, "y": 500, "safety_decision": decision}}
    acted = await driving.act(vocabulary="gemini.3_5", payload=payload)
    assert [check["message"] for check in acted["checks"]] == ["It buys something."]
    (said,) = await driving.events("confirmation")
    assert (said.payload["state"], said.payload["by"]) == ("acknowledged", "driver")
    assert said.payload["checks"] == acted["checks"]


async def test_without_a_screen_there_is_nothing_to_act_on(tenant: Tenant) -> None:
    shell = await remote_run(tenant)
    assert (await shell.act(409, actions=[{"type": "screenshot"}]))["type"].endswith(":no_screen")
    for lease in ({}, {"Workstead-Lease": shell.lease}):
        answer = await tenant.client.get(f"/v1/runs/{shell.run_id}/desktop/screenshot", headers=lease)
        assert answer.json()["type"].endswith(":no_screen")
    assert not shell.worker.asked


async def test_without_the_lease_nothing_is_done(driving: Driving) -> None:
    driving.lease = "lease_of_nobody"
    assert (await driving.act(409, actions=[{"type": "screenshot"}]))["type"].endswith(":lease_lost")
    assert not driving.worker.asked


async def test_whoever_may_read_sees_the_screen_and_leaves_no_trace(driving: Driving) -> None:
    path = f"/v1/runs/{driving.run_id}/desktop/screenshot"
    reader = await driving.tenant.token("runs:read")
    answer = await driving.tenant.client.get(path, params={"format": "png", "cursor": "false"}, headers=reader)
    assert (answer.status_code, answer.content) == (200, PNG + b"shot 1")
    assert (answer.headers["etag"], answer.headers["content-type"]) == (f'"{sha(answer.content)}"', "image/png")
    (asked,) = driving.worker.asked
    assert (asked["batch"]["shot"]["cursor"], asked["batch"].get("actions", []), asked["before"]) == (False, [], False)
    assert not await driving.events("tool.call", "desktop.action")
    driver = await driving.tenant.token("runs:drive")
    assert (await driving.tenant.client.get(path, headers=driver)).status_code == 403
    assert (
        await driving.tenant.client.get(path, headers={**reader, "Workstead-Lease": driving.lease})
    ).status_code == 403
    seen = await driving.tenant.client.get(path, headers={**driver, "Workstead-Lease": driving.lease})
    assert seen.content == PNG + b"shot 2"
    (done,) = await driving.events("desktop.action")
    assert done.payload["after"]["sha256"] == sha(seen.content)


async def test_one_looks_at_a_time(driving: Driving) -> None:
    """Whoever watches must not keep the driver waiting."""
    path = f"/v1/runs/{driving.run_id}/desktop/screenshot"
    driving.worker.gate = asyncio.Event()
    first = asyncio.create_task(driving.tenant.client.get(path))
    await asyncio.wait_for(driving.worker.begun.wait(), 20)
    second = await driving.tenant.client.get(path)
    assert (second.status_code, second.json()["type"]) == (429, "urn:workstead:problem:busy")
    driving.worker.gate.set()
    assert (await first).status_code == 200
    assert (await driving.tenant.client.get(path)).status_code == 200


async def test_a_recorded_picture_is_the_runs_own(driving: Driving, other: Tenant) -> None:
    acted = await driving.act(actions=[{"type": "screenshot"}], inline=False)
    shot = acted["screenshot"]
    assert shot["data_base64"] is None
    answer = await driving.tenant.client.get(shot["href"])
    assert (sha(answer.content), answer.headers["content-type"]) == (shot["sha256"], "image/png")
    assert "immutable" in answer.headers["cache-control"]
    again = await driving.tenant.client.get(shot["href"], headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert (await other.client.get(shot["href"])).status_code == 404
    mine = await driving.tenant.blob(PNG + b"another of the project's files")
    second = await remote_run(driving.tenant, surface="desktop", note="second")
    for run_id, digest in ((driving.run_id, mine), (second.run_id, shot["sha256"])):
        path = f"/v1/runs/{run_id}/desktop/pictures/{digest}"
        assert (await driving.tenant.client.get(path)).status_code == 404


async def test_the_same_by_mcp(driving: Driving) -> None:
    async def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        path = f"/v1/runs/{driving.run_id}/mcp"
        return (await driving.tenant.post(path, body, 200, **{"Workstead-Lease": driving.lease}))["result"]

    names = {tool["name"] for tool in (await call("tools/list"))["tools"]}
    assert {"desktop_actions", "desktop_screenshot"} <= names
    said = await call("tools/call", name="desktop_actions", arguments={"actions": [{"type": "screenshot"}]})
    assert [(c["type"], c.get("mimeType")) for c in said["content"]] == [
        ("text", None), ("image", "image/png"), ("image", "image/png"),
    ]  # fmt: skip
    assert base64.b64decode(said["content"][2]["data"]) == PNG + b"shot 1"
    assert "data_base64" not in said["structuredContent"]["screenshot"]
    assert "Untitled 1" in said["content"][0]["text"]
    seen = await call("tools/call", name="desktop_screenshot", arguments={})
    assert base64.b64decode(seen["content"][1]["data"]) == PNG + b"shot 2"
    driving.worker.errors[0] = "out_of_bounds"
    failed = await call("tools/call", name="desktop_actions", arguments={"actions": [{"type": "move", "x": 1, "y": 1}]})
    assert failed["isError"] is True
    assert "out_of_bounds" in failed["content"][0]["text"]
    bad = await call("tools/call", name="desktop_actions", arguments={"vocabulary": "x", "payload": {}})
    assert (bad["isError"], bad["content"][0]["text"].split(":")[0]) == (True, "unknown_vocabulary")


async def test_without_a_screen_mcp_has_no_tools_for_one(tenant: Tenant) -> None:
    shell = await remote_run(tenant)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    listed = await tenant.post(f"/v1/runs/{shell.run_id}/mcp", body, 200)
    assert not [tool for tool in listed["result"]["tools"] if tool["name"].startswith("desktop")]

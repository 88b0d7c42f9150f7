"""A real program and our own agent make media through services of the gateway; what it cost, and its trace at a collector."""

import gzip
import io
import threading
import wave
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from PIL import Image

from service.models.scripted.scenario import Action, Scenario, ToolCall
from tests.journeys.jobs import Record, make_task, record, submit
from tests.journeys.models import Lab, lab
from tests.journeys.stack import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LIMITS = {"memory_bytes": 1 << 30, "disk_bytes": 512 << 20, "wall_clock_s": 200}
COMMANDS = Scenario(
    name="commands", final="Made ✓",
    steps=[
        Action(run="ws-media image 'a red barn' --size 32x16 -o output/barn.png"),
        Action(run="ws-media speech 'Guten Tag' -o output/hello.wav && ws-media transcribe output/hello.wav"),
    ],
)  # fmt: skip
TOOLS = Scenario(
    name="tools", final="Made ✓",
    steps=[
        Action(call=ToolCall(name="generate_image", arguments={"prompt": "a red barn", "path": "output/barn.png", "size": "32x16"})),
        Action(call=ToolCall(name="generate_speech", arguments={"text": "Guten Tag", "path": "output/hello.wav"})),
        Action(call=ToolCall(name="transcribe", arguments={"path": "output/hello.wav"})),
    ],
)  # fmt: skip


AGENTS = {"claude-code@latest": COMMANDS, "tool-agent@1": TOOLS}
SERVICES = ("images", "speech", "transcription")


class Collector(BaseHTTPRequestHandler):
    taken: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.taken.append(ExportTraceServiceRequest.FromString(gzip.decompress(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture(scope="module")
def taken() -> list[ExportTraceServiceRequest]:
    return []


@pytest.fixture(scope="module")
def there(taken: list[ExportTraceServiceRequest]) -> Iterator[Lab]:
    handler = type("Taking", (Collector,), {"taken": taken})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            with lab(WORKSTEAD_OTEL__ENDPOINT=f"http://127.0.0.1:{collector.server_port}") as made:
                _add_services(made)
                yield made
        finally:
            collector.shutdown()
            thread.join()


def _add_services(there: Lab) -> None:
    for name in SERVICES:
        spec = {"name": name, "base_url": f"{there.provider.url}/v1", "allow": [{"methods": ["POST"]}]}
        made = there.stack.call("POST", "/v1/services", json={**spec, "price_per_call_usd": "0.02"})
        secret = {"secret": "sk-scripted-media", "purpose": "service"}
        there.stack.call("PUT", f"/v1/services/{made['id']}/credential", json=secret)


@pytest.fixture(scope="module")
def ran(there: Lab) -> dict[str, Record]:
    """A run of each scaffold."""
    task = make_task(there.stack, limits=LIMITS, graders=[])
    begun: dict[str, str] = {}
    for scaffold, scenario in AGENTS.items():
        agent = there.agent(scaffold, there.model("anthropic", scenario), services=list(SERVICES))
        begun[scaffold] = submit(there.stack, task, agent)
    return {scaffold: record(there.stack, run_id, 400) for scaffold, run_id in begun.items()}


@pytest.mark.parametrize("scaffold", AGENTS)
def test_media_are_delivered_paid_and_traced(
    there: Lab, taken: list[ExportTraceServiceRequest], ran: dict[str, Record], scaffold: str
) -> None:
    seen = ran[scaffold]
    run, run_id = seen.run, seen.run["id"]
    assert run["ended_because"] == "completed", (run, seen.output(1), seen.output(1, "stderr"))
    picture = Image.open(io.BytesIO(_artifact(there, run_id, "output/barn.png")))
    assert (picture.format, picture.size) == ("PNG", (32, 16))
    with wave.open(io.BytesIO(_artifact(there, run_id, "output/hello.wav"))) as sound:
        assert sound.getnframes() == 9 * 160
    assert any("Guten Tag" in str(event["payload"].get("output")) for event in seen.of("tool.result"))
    used = [
        (e["payload"]["service"], e["payload"]["status"], e["payload"]["cost_usd"]) for e in seen.of("service.call")
    ]
    assert used == [(name, 200, "0.02") for name in SERVICES]
    usage = run["usage"]
    assert (usage["service_calls"], usage["services_cost_usd"]) == (3, "0.06")
    names = wait_until("its trace", lambda: _spans(taken, run["trace_id"]))
    assert {f"run {run['task']['name']}", "attempt", "provisioning", "collecting", "POST images"} <= set(names)
    assert names.count("chat claude-sonnet-4-6") == usage["requests"]
    assert [n for n in names if n.startswith("execute_tool ")] == [
        f"execute_tool {event['payload']['name']}" for event in seen.of("tool.call")
    ]


def test_replays_make_the_same_files_while_nobody_is_there(there: Lab, ran: dict[str, Record]) -> None:
    there.provider.stop()
    begun: dict[str, str] = {}
    for scaffold, seen in ran.items():
        again = there.stack.call("POST", f"/v1/runs/{seen.run['id']}/rerun", json={"mode": "replay"})
        begun[scaffold] = again["id"]
    for scaffold, run_id in begun.items():
        seen = record(there.stack, run_id, 400)
        assert seen.run["ended_because"] == "completed", (scaffold, seen.of("note"), seen.output(1))
        assert not seen.of("note")
        calls = there.stack.call("GET", f"/v1/runs/{run_id}/service-calls")["data"]
        assert [(one["service"], one["cost_usd"], one["replay_of_n"]) for one in calls] == [
            (name, "0", n) for n, name in enumerate(SERVICES, 1)
        ]
        for path in ("output/barn.png", "output/hello.wav"):
            assert _artifact(there, run_id, path) == _artifact(there, ran[scaffold].run["id"], path)


def _artifact(there: Lab, run_id: str, path: str) -> bytes:
    return there.stack.http.get(f"/v1/runs/{run_id}/artifacts/{path}").content


def _spans(taken: list[ExportTraceServiceRequest], trace_id: str) -> list[str]:
    return [
        span.name
        for request in list(taken)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.trace_id.hex() == trace_id
    ]

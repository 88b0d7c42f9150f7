"""Finished runs at a collector: what the gateway and the log say of them, as spans over OTLP/HTTP."""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import text

from service.api.run_view import run_view
from service.domain.events import EventType, NewEvent
from service.domain.grants import Grant
from service.domain.run_states import AttemptState, EndedBecause, Outcome, Phase
from service.domain.traces import trace_id
from service.store import attempts, events, runs
from service.store.finished_runs import TRACED
from service.store.notifications import Notifications
from service.store.rows_requests import CallEnd, NewCall
from service.workers.otlp import BATCH, OtlpCollector
from service.workers.tracing import RunTracer, Tracing
from tests.integration.gateway.bench import TOKEN, GateBench, messages, until
from tests.integration.workers.receiver import Received, Receiver, receiving

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = "Bearer collectors-own-key"
QUICK: dict[str, Any] = {"scan_s": 0.05, "first_pause_s": 0.05, "last_pause_s": 0.1}


def decoded(receiver: Receiver) -> list[ExportTraceServiceRequest]:
    return [ExportTraceServiceRequest.FromString(gzip.decompress(one.body)) for one in receiver.seen]


def spans_of(receiver: Receiver) -> list[Any]:
    return [
        span
        for request in decoded(receiver)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes(span: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found


class Scene:
    def __init__(self, bench: GateBench, grant: Grant) -> None:
        self.bench, self.grant = bench, grant
        self.offset = 0

    async def phase(self, phase: Phase, **more: Any) -> None:
        async with self.bench.db.transaction() as tx:
            await runs.set_phase(tx, self.grant.run_id, phase, **more)

    async def say(self, type_: EventType, **payload: Any) -> None:
        self.offset += 1
        event = NewEvent(type_, payload, "loop.told", self.offset, datetime.now(UTC))
        async with self.bench.db.transaction() as tx:
            await events.append(tx, self.grant.run_id, self.grant.attempt, None, [event])

    async def work(self) -> None:
        """A request, a tool call that fails, one that hangs, a call to a service, and the end."""
        await self.phase(Phase.RUNNING)
        client = await self.bench.client(self.grant)
        assert (await client.post("/anthropic/v1/messages", json=messages())).status_code == 200
        await self.say(EventType.AGENT_MESSAGE, text="I look at the secret plan")
        await self.say(EventType.TOOL_CALL, id="c1", name="bash", arguments={"command": "cat plan"})
        await self.say(EventType.TOOL_RESULT, id="c1", output="no such plan", is_error=True)
        await self.say(EventType.TOOL_CALL, id="c2", name="python", arguments={"code": "pass"})
        new = NewCall(
            "svq_" + self.grant.run_id, self.grant.project_id, self.grant.run_id, self.grant.attempt, "gate-1", "search",
            "GET", "/web/1", cost_usd=Decimal("0.005"),
        )  # fmt: skip
        await self.bench.ledger.begin_call(new)
        self.bench.ledger.settle_call(new, CallEnd(503, None, 10, 0.1))
        await self.bench.ledger.flush()
        await self.end()

    async def end(self) -> None:
        async with self.bench.db.transaction() as tx:
            row = await attempts.get(tx, self.grant.run_id, self.grant.attempt)
            assert row is not None
            await attempts.advance(tx, row, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
        await self.phase(Phase.DONE, outcome=Outcome.GRADED)


async def scene(bench: GateBench) -> Scene:
    """A run that is about to begin; earlier ones are no more."""
    async with bench.db.transaction() as tx:
        await tx.execute(text("DELETE FROM runs"))
        await tx.execute(text("DELETE FROM changes"))
    return Scene(bench, await bench.grant())


@asynccontextmanager
async def tracer(bench: GateBench, url: str, **options: Any) -> AsyncGenerator[RunTracer]:
    collector = OtlpCollector(url, {"authorization": SECRET}, "our service", 2.0)
    made = RunTracer(bench.db, Notifications(""), collector, Tracing(**(QUICK | options)))
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def traced(bench: GateBench, run_id: str) -> bool:
    async with bench.db.reading() as tx:
        query = text("SELECT traced_at IS NOT NULL FROM traced_runs WHERE run_id = :id")
        return bool((await tx.execute(query, {"id": run_id})).scalar_one_or_none())


async def wait_traced(bench: GateBench, run_id: str) -> None:
    for _ in range(400):
        if await traced(bench, run_id):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


async def test_a_run_is_a_trace_whose_id_follows_from_its_own(bench: GateBench) -> None:
    made = await scene(bench)
    await made.work()
    run_id = made.grant.run_id
    async with receiving() as receiver:
        async with tracer(bench, receiver.url("")):
            await wait_traced(bench, run_id)
        (request,) = decoded(receiver)
    row = await bench.run_row(made.grant)
    assert run_view(row).trace_id == trace_id(run_id)
    assert receiver.seen[0].path == "/v1/traces"
    assert receiver.seen[0].headers["authorization"] == SECRET
    resource = {pair.key: pair.value.string_value for pair in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "our service"
    found = {span.name: span for span in spans_of(receiver)}
    assert {span.trace_id.hex() for span in found.values()} == {trace_id(run_id)}
    by_id = {span.span_id: span.name for span in found.values()}
    assert {name: by_id.get(span.parent_span_id) for name, span in found.items()} == {
        "run t/one": None,
        "attempt": "run t/one",
        "queued": "run t/one",
        "provisioning": "attempt",
        "invoke_agent cmd@1": "attempt",
        "collecting": "attempt",
        "chat anthropic-1": "invoke_agent cmd@1",
        "execute_tool bash": "invoke_agent cmd@1",
        "execute_tool python": "invoke_agent cmd@1",
        "GET search": "invoke_agent cmd@1",
    }
    for span in found.values():
        parent = next((one for one in found.values() if one.span_id == span.parent_span_id), span)
        assert parent.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    _check_words(found, run_id, row.cost_usd)


def _check_words(found: dict[str, Any], run_id: str, cost: Decimal | None) -> None:
    agent = attributes(found["invoke_agent cmd@1"])
    assert (agent["gen_ai.operation.name"], agent["gen_ai.conversation.id"]) == ("invoke_agent", run_id)
    assert (agent["gen_ai.provider.name"], agent["gen_ai.request.model"]) == ("anthropic", "anthropic-1")
    model = found["chat anthropic-1"]
    told = attributes(model)
    (asked,) = [told[f"gen_ai.{name}"] for name in ("provider.name",)]
    assert (asked, told["gen_ai.request.model"], told["gen_ai.operation.name"]) == ("anthropic", "anthropic-1", "chat")
    assert told["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert told["gen_ai.response.model"]
    assert told["gen_ai.usage.input_tokens"] >= told["gen_ai.usage.cache_read.input_tokens"] >= 0
    assert told["gen_ai.usage.output_tokens"] > 0
    assert cost is not None
    assert told["workstead.cost_usd"] == pytest.approx(float(cost))
    assert (model.kind, model.status.code) == (3, 0)
    assert "error.type" not in told
    bash = attributes(found["execute_tool bash"])
    assert (bash["gen_ai.tool.name"], bash["gen_ai.tool.call.id"], bash["error.type"]) == ("bash", "c1", "tool_error")
    assert found["execute_tool bash"].status.code == 2
    assert attributes(found["execute_tool python"])["error.type"] == "no_result"
    assert attributes(found["GET search"])["error.type"] == "503"


async def test_no_content_and_no_key_leaves_unless_it_is_wanted(bench: GateBench) -> None:
    made = await scene(bench)
    await made.work()
    seen: list[bytes] = []
    for content in (False, True):
        async with receiving() as receiver, tracer(bench, receiver.url(""), content=content):
            await wait_traced(bench, made.grant.run_id)
            seen.append(b"".join(gzip.decompress(one.body) for one in receiver.seen))
            found = {span.name: attributes(span) for span in spans_of(receiver)}
        async with bench.db.transaction() as tx:
            await tx.execute(text("DELETE FROM traced_runs"))
    for word in (b"secret plan", b"cat plan", b"no such plan"):
        assert word not in seen[0]
        assert word in seen[1]
    for word in (TOKEN, bench.key.value, SECRET):
        assert word.encode() not in seen[0] + seen[1]
    assert json.loads(found["execute_tool bash"]["gen_ai.tool.call.arguments"]) == {"command": "cat plan"}
    said = json.loads(found["invoke_agent cmd@1"]["gen_ai.output.messages"])
    assert said == [{"role": "assistant", "parts": [{"type": "text", "content": "I look at the secret plan"}]}]


async def test_a_collector_that_is_away_gets_it_when_it_is_back(bench: GateBench) -> None:
    made = await scene(bench)
    await made.end()
    answers = ["503 Busy", "401 Who are you", "302 Found", None]
    tries = 0

    def answer(_: Received) -> str | None:
        nonlocal tries
        tries += 1
        return answers[tries - 1] if tries <= len(answers) else "200 OK"

    async with receiving() as receiver:
        receiver.answer = answer
        async with tracer(bench, receiver.url("")):
            await until(lambda: tries >= 3)
            assert not await traced(bench, made.grant.run_id)
            await wait_traced(bench, made.grant.run_id)
    assert tries == 5
    ids = [sorted(span.span_id for span in _spans(request)) for request in decoded(receiver)]
    assert all(one == ids[0] for one in ids), "a repetition is no news"


def _spans(request: ExportTraceServiceRequest) -> list[Any]:
    return [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]


async def test_nobody_at_the_address_costs_nothing(bench: GateBench) -> None:
    made = await scene(bench)
    async with tracer(bench, "http://127.0.0.1:9"):
        await made.work()
        assert (await bench.run_row(made.grant)).outcome is Outcome.GRADED
        assert not await traced(bench, made.grant.run_id)


async def test_a_trace_that_is_refused_does_not_keep_others_back(bench: GateBench) -> None:
    made = await scene(bench)
    await made.end()
    other = Scene(bench, await bench.grant("wsr_other"))
    await other.end()
    first = bytes.fromhex(trace_id(made.grant.run_id))

    def answer(received: Received) -> str:
        return "400 Bad Request" if first in gzip.decompress(received.body) else "200 OK"

    async with receiving() as receiver:
        receiver.answer = answer
        async with tracer(bench, receiver.url("")):
            await wait_traced(bench, other.grant.run_id)
            await wait_traced(bench, made.grant.run_id)
    assert len(receiver.seen) == 2


async def test_a_long_run_goes_in_batches(bench: GateBench) -> None:
    made = await scene(bench)
    await made.phase(Phase.RUNNING)
    now = datetime.now(UTC)
    calls = [NewEvent(EventType.TOOL_CALL, {"id": str(n), "name": "bash"}, "x", n, now) for n in range(2 * BATCH)]
    async with bench.db.transaction() as tx:
        await events.append(tx, made.grant.run_id, made.grant.attempt, None, calls)
    await made.end()
    async with receiving() as receiver, tracer(bench, receiver.url("")):
        await wait_traced(bench, made.grant.run_id)
    sizes = [len(_spans(request)) for request in decoded(receiver)]
    assert sizes[:2] == [BATCH, BATCH]
    assert len(sizes) == 3
    assert len({span.span_id for span in spans_of(receiver)}) == sum(sizes)


async def test_a_run_is_sent_once_by_one_process(bench: GateBench) -> None:
    made = await scene(bench)
    await made.end()
    async with bench.db.transaction() as tx:
        assert await TRACED.claim(tx, made.grant.run_id)
    async with bench.db.transaction() as tx:
        assert not await TRACED.claim(tx, made.grant.run_id)
        assert (await TRACED.due(tx, 0, 1000, 10)).run_ids == []
        # Its process died long ago.
        await tx.execute(
            text("UPDATE traced_runs SET claimed_at = :then"), {"then": datetime.now(UTC) - timedelta(hours=1)}
        )
    async with receiving() as receiver, tracer(bench, receiver.url("")), tracer(bench, receiver.url("")):
        await wait_traced(bench, made.grant.run_id)
        async with bench.db.reading() as tx:
            assert (await TRACED.due(tx, 0, 1000, 10)).run_ids == []
    assert len(receiver.seen) == 1


async def test_without_a_collector_nothing_of_it_is_loaded() -> None:
    program = "import sys, service.wiring.grader; print(*(m for m in sys.modules if m.startswith('opentelemetry.')))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    loaded = said.decode().split()
    assert process.returncode == 0
    assert [name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))] == []

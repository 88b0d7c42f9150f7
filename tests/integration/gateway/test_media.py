"""Media tools from the call to the bytes in the workspace, through the gateway and its prices, to scripted back ends."""

import io
import json
import socket
import wave
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from service.api.run_view import run_view
from service.domain.agents import AgentSettings
from service.domain.credentials import Purpose
from service.domain.grants import GrantedService
from service.domain.models import Dialect
from service.domain.policies import RunBudget
from service.domain.services import ServiceSpec
from service.gateway.credentials import Vault
from service.gateway.egress.serving import EgressServing
from service.gateway.endpoints import Endpoints
from service.gateway.http_server import HttpServing
from service.gateway.services import GatewayServices
from service.lifecycle import loop_services
from service.lifecycle.loop_drive import SandboxShell
from service.models.messages import Reach, ToolCall, ToolResult
from service.sandboxes.contract import Sandbox, SandboxSpec
from service.scaffolds.loops import Act, LoopJob, Tell, silent
from service.scaffolds.media.placing import SERVICES
from service.scaffolds.tool_loop import media
from service.scaffolds.tool_loop.calls import Calls, offered
from service.store import credentials, events, services
from service.store.sealed_box import OpeningKey
from service.testing.memory_sandbox import MemoryBackend, MemoryHost
from tests.integration.gateway.bench import LIMITS, TOKEN, GateBench
from tests.unit.scaffolds.build import CONTEXT, task

pytestmark = pytest.mark.asyncio(loop_scope="module")
KEY = OpeningKey(bytes(range(32)))
PRICES: dict[str, dict[str, Any]] = {
    "images": {"price_per_unit": {"field": "n", "usd": "0.04"}},
    "speech": {"price_per_unit": {"field": "input", "counts": "characters", "usd": "15", "per": 1_000_000}},
    "video": {"price_per_unit": {"field": "seconds", "usd": "0.1"}},
    "transcription": {"price_per_call_usd": "0.006"},
}
POST_AND_GET = [{"methods": ["GET", "POST"], "path": "/**"}]


class Once:
    """A journal of one process: every step is done."""

    async def step(self, kind: str, key: str, act: Act, tell: Tell = silent) -> dict[str, Any]:
        return json.loads(json.dumps(await act()))


class Studio:
    """A run with the four media services, and the tools of its agent."""

    def __init__(self, bench: GateBench, sandbox: Sandbox, calls: Calls, grant: Any, endpoints: Endpoints) -> None:
        self.bench, self.sandbox, self.calls, self.grant, self.endpoints = bench, sandbox, calls, grant, endpoints
        self._n = 0

    async def do(self, name: str, **arguments: Any) -> ToolResult:
        self._n += 1
        return await self.calls.perform(ToolCall(id=f"c{self._n}", name=name, arguments=arguments), f"call-{self._n}")

    async def file(self, path: str) -> bytes:
        return await self.sandbox.read_file(path)

    async def used(self) -> list[dict[str, Any]]:
        await self.bench.ledger.flush()
        async with self.bench.db.reading() as tx:
            return [e.payload for e in await events.read(tx, self.grant.run_id, 0, 100, ["service.call"])]


async def _services(bench: GateBench, project_id: str) -> list[GrantedService]:
    found: list[GrantedService] = []
    async with bench.db.transaction() as tx:
        await credentials.register_key(tx, KEY.id, KEY.public)
        for name in SERVICES:
            spec = {"name": name, "base_url": f"{bench.provider.url}/v1", "allow": POST_AND_GET, **PRICES[name]}
            row, new = await services.create(tx, project_id, ServiceSpec.model_validate(spec), private=True)
            if new:
                await credentials.put(tx, "service", project_id, row.id, Purpose.SERVICE, "sk-scripted-media")
            found.append(GrantedService(id=row.id, name=name))
    return found


Open = Callable[..., Any]


@pytest_asyncio.fixture(loop_scope="module")
async def studio(bench: GateBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    monkeypatch.setattr(media, "VIDEO_EVERY_S", 0.01)
    host = MemoryHost()
    backend = MemoryBackend(host)
    opened: list[Studio] = []
    served = GatewayServices(bench.db, bench.ledger, bench.upstream, Vault(bench.db, KEY), LIMITS)

    async def make(max_usd: str | None = None, **settings: Any) -> Studio:
        grant = await bench.grant(budget=RunBudget(max_usd=max_usd))
        grant = grant.model_copy(update={"services": await _services(bench, grant.project_id)})
        endpoints = Endpoints(bench.forwarding, served, bench.ledger, HttpServing(64), LIMITS, EgressServing(bench.db))
        path = tmp_path / f"{len(opened)}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        await endpoints.open(grant, {80: listener})
        _, attempt = await bench.run()
        sandbox = await backend.make(SandboxSpec(await backend.resolve_image("base")))
        context = replace(CONTEXT, settings=AgentSettings.model_validate({"services": list(SERVICES), **settings}))
        reach = Reach(socket=str(path), token=TOKEN, upstream_id="", dialect=Dialect.OPENAI)
        ours = loop_services.GatewayServices(reach, SERVICES)
        shell = SandboxShell(sandbox, attempt, {})
        model: Any = None
        made = Studio(
            bench, sandbox, calls_of(LoopJob(task(), context, shell, model, Once(), None, ours)), grant, endpoints
        )
        opened.append(made)
        return made

    yield make
    for one in opened:
        await one.endpoints.shut()
        await backend.remove(one.sandbox.id)
    host.close()


def calls_of(job: LoopJob) -> Calls:
    return Calls(job, offered(job))


async def test_a_picture_lands_in_the_workspace_and_is_paid_for(studio: Open) -> None:
    made: Studio = await studio(media={"images": {"model": "painter-1", "quality": "low"}})
    result = await made.do("generate_image", prompt="a red barn", path="output/a/barn.png", size="40x20")
    assert not result.is_error, result.text
    assert result.text.startswith("wrote /workspace/output/a/barn.png: png, ")
    picture = Image.open(io.BytesIO(await made.file("output/a/barn.png")))
    picture.load()
    assert (picture.format, picture.size) == ("PNG", (40, 20))
    (call,) = await made.used()
    assert (call["service"], call["status"], call["units"], call["cost_usd"]) == ("images", 200, 1, "0.04")
    asked = made.bench.asked()[-1].json
    assert asked == {"model": "painter-1", "quality": "low", "prompt": "a red barn", "size": "40x20", "n": 1}


async def test_what_was_spoken_can_be_written_down_again(studio: Open) -> None:
    made: Studio = await studio()
    spoken = await made.do("generate_speech", text="Grüße aus Köln", path="/workspace/output/hello.wav", voice="nova")
    assert not spoken.is_error, spoken.text
    with wave.open(io.BytesIO(await made.file("output/hello.wav"))) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8000, 14 * 160)
    assert made.bench.asked()[-1].json["voice"] == "nova"
    heard = await made.do("transcribe", path="output/hello.wav", language="de")
    assert (heard.is_error, heard.text) == (False, "Grüße aus Köln")
    assert b'name="language"\r\n\r\nde\r\n' in made.bench.asked()[-1].body
    assert [c["cost_usd"] for c in await made.used()] == ["0.00021", "0.006"]


async def test_a_video_is_waited_for(studio: Open) -> None:
    made: Studio = await studio()
    result = await made.do("generate_video", prompt="waves", path="output/waves.avi", seconds=3)
    assert not result.is_error, result.text
    film = await made.file("output/waves.avi")
    assert film[:4] + film[8:12] == b"RIFFAVI "
    assert int.from_bytes(film[4:8], "little") == len(film) - 8
    used = await made.used()
    assert [(c["method"], c["cost_usd"]) for c in used] == [("POST", "0.3"), *[("GET", "0")] * 3]
    row = await made.bench.run_row(made.grant)
    assert (run_view(row).usage.services_cost_usd, row.service_calls) == ("0.3", 4)


@pytest.mark.parametrize(
    ("tool", "arguments", "word"),
    [
        ("generate_image", {"prompt": "x", "path": "../../etc/x.png"}, "bad_path: "),
        ("generate_image", {"prompt": "x", "path": "/etc/x.png"}, "bad_path: "),
        ("generate_image", {"prompt": "  ", "path": "x.png"}, "bad_text: "),
        ("generate_image", {"prompt": "a [refuse] b", "path": "x.png"}, "service_refused: status 400"),
        ("transcribe", {"path": "not-there.wav"}, "bad_file: "),
        ("transcribe", {"path": ".", "language": "de"}, "bad_path: "),
    ],
)
async def test_what_goes_wrong_is_a_typed_result(studio: Open, tool: str, arguments: dict[str, Any], word: str) -> None:
    made: Studio = await studio()
    result = await made.do(tool, **arguments)
    assert result.is_error
    assert result.text.startswith(word)


async def test_what_the_run_cannot_pay_is_not_made(studio: Open) -> None:
    made: Studio = await studio(max_usd="0.05")
    assert not (await made.do("generate_image", prompt="one", path="1.png")).is_error
    second = await made.do("generate_image", prompt="two", path="2.png")
    assert second.text.startswith("service_refused: status 400: budget_exhausted")
    assert made.endpoints.state((made.grant.run_id, made.grant.attempt)).budget_exhausted
    row = await made.bench.run_row(made.grant)
    assert row.service_cost_usd == Decimal("0.04")


async def test_without_services_there_are_no_such_tools(studio: Open) -> None:
    made: Studio = await studio()
    assert {*media.NAMES} <= {*made.calls.offered}
    without = replace(made.calls.job, services=None)
    assert not {*media.NAMES} & {*calls_of(without).offered}

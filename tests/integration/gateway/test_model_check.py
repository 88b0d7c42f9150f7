"""What a catalogue's model can do, asked through the gateway's own side of a provider that follows a script."""

import socket
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.domain.credentials import Purpose
from service.domain.grants import GrantedModel
from service.domain.models import Dialect
from service.domain.operations import OperationState
from service.gateway.front import Front, NoServices
from service.gateway.http_server import HttpServing
from service.gateway.sides import OwnSide
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.lifecycle.own_side import OwnWay
from service.models.scripted.scenario import Action, Scenario, ToolCall
from service.store import credentials, models, operations, run_models
from service.store.sealed_box import OpeningKey
from tests.integration.gateway.bench import GateBench

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN = "svc_of-our-own-processes-0123456789"
ADDS = Scenario(name="adds", steps=[Action(call=ToolCall(name="add", arguments={"a": 2, "b": 3}))], final="pong")
CHECKS = {
    Dialect.ANTHROPIC: ["stream", "tools", "image", "effort:low"],
    Dialect.OPENAI: ["stream", "tools", "image", "responses", "effort:low"],
    Dialect.GEMINI: ["stream", "tools", "image", "effort:low"],
}
Check = Callable[[Dialect, str], Any]


@pytest_asyncio.fixture(loop_scope="module")
async def check(bench: GateBench, tmp_path: Path) -> AsyncIterator[Check]:
    """Perform the operation ``model_check`` on a new entry; give its operation and the entry."""
    bench.provider.add(ADDS)
    project_id = (await bench.run())[0].project_id
    place, token = tmp_path / "models.sock", tmp_path / "service-token"
    token.write_text(f"{TOKEN}\n")

    async def find(project: str, names: list[str]) -> list[GrantedModel]:
        async with bench.db.reading() as tx:
            return await run_models.granted_models(tx, project, names)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    own = OwnSide(bench.endpoints, TOKEN, find, patience_s=1.0)
    listening = await HttpServing(16).start(Front(bench.forwarding, NoServices(), own.admit), listener)
    ctx = OperationContext(bench.db, bench.blobs, gateway=OwnWay(place, token))

    async def perform_check(dialect: Dialect, scenario: str) -> Any:
        bench.begin(scenario)
        async with bench.db.transaction() as tx:
            opening = OpeningKey(bytes(range(32)))
            await credentials.register_key(tx, opening.id, opening.public)
            spec = bench.model(dialect, name=f"check/{uuid.uuid4().hex}", efforts=["low"]).spec
            row, _ = await models.create(tx, project_id, spec, private=True)
            await credentials.put(tx, "model", project_id, row.id, Purpose.MODEL, "kept by the test's own vault")
            made = await models.get(tx, project_id, row.id)
            assert made is not None
            asked = {"model_id": made.id, "revision": made.revision}
            operation = await operations.create(tx, project_id, "model_check", asked, "checks")
        await perform(ctx, operation.id)
        async with bench.db.reading() as tx:
            return await operations.get(tx, project_id, operation.id), await models.get(tx, project_id, made.id)

    yield perform_check
    await listening.close()


@pytest.mark.parametrize("dialect", CHECKS)
async def test_each_capability_is_asked_for_and_works(check: Check, bench: GateBench, dialect: Dialect) -> None:
    operation, model = await check(dialect, "adds")
    assert operation.state is OperationState.SUCCEEDED, operation
    found = operation.result["checks"]
    assert [(one["name"], one["state"], one["status"], one["detail"]) for one in found] == [
        (name, "ok", 200, "") for name in CHECKS[dialect]
    ]
    assert operation.result["ok"] is True
    assert operation.result["usage"]
    assert model.check_result == operation.result
    assert len(bench.asked()) == len(CHECKS[dialect])


async def test_what_a_model_cannot_do_is_said(check: Check) -> None:
    """It answers in words where a tool was to be called: that is no failure of the connection."""
    operation, _ = await check(Dialect.ANTHROPIC, "text")
    states = {one["name"]: (one["state"], one["status"]) for one in operation.result["checks"]}
    assert states == {"stream": ("ok", 200), "tools": ("failed", 200), "image": ("ok", 200), "effort:low": ("ok", 200)}


async def test_a_providers_error_is_shown_as_it_came(check: Check, bench: GateBench) -> None:
    operation, model = await check(Dialect.OPENAI, "e401")
    assert operation.state is OperationState.SUCCEEDED
    assert (operation.result["ok"], model.check_result["ok"]) == (False, False)
    for one in operation.result["checks"]:
        assert one["state"] == "failed"
        assert "401" in one["detail"] or one["status"] == 401, one
        assert "sk-scripted" not in one["detail"]

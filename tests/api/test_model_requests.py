"""The ledger of a run over the API, and the kept bodies for those who may debug."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from service.domain.errors import Gone
from service.domain.ids import new_id
from service.domain.models import Cost, CostBasis, TokenUsage
from service.store import model_requests
from service.store.request_bodies import pack
from service.store.rows import AttemptRow
from service.store.rows_requests import NewRequest, Settlement
from tests.api.helpers import Tenant

NOW = datetime(2026, 11, 30, tzinfo=UTC)
REQUEST, RESPONSE = b'{"messages": []}', b'{"content": []}'
PRICED = Cost(usd=Decimal("0.0123000000"), basis=CostBasis.MEASURED)


def new_request(one: Tenant, attempt: AttemptRow, purpose: str = "agent") -> NewRequest:
    return NewRequest(
        new_id("mrq"), one.project_id, "gate", attempt.run_id, attempt.n, purpose, "mdl_1", "acme", "openai",
        "POST /v1/responses", "one", False, 500, Decimal("0.5"),
    )  # fmt: skip


async def asked(one: Tenant, attempt: AttemptRow, *, settled: bool = True, purpose: str = "agent") -> str:
    """Have the attempt ask a model, with bodies of which the answer's is cut."""
    new = new_request(one, attempt, purpose)
    async with one.state.db.transaction() as tx:
        await model_requests.begin(tx, new)
        await model_requests.announce(tx, new.id, NOW)
    if settled:
        kept = [pack(REQUEST), pack(RESPONSE, 1000)]
        blobs = dict([one.state.blobs.store_bytes(data) for data in kept])
        names = list(blobs)
        end = Settlement(
            200, usage=TokenUsage(input_tokens=10, output_tokens=5), cost=PRICED, total_s=1.5, reported_model="one-2026",
            request_blob=names[0], response_blob=names[1], blobs=blobs,
        )  # fmt: skip
        async with one.state.db.transaction() as tx:
            assert await model_requests.settle(tx, new.id, end, NOW)
            assert not await model_requests.settle(tx, new.id, end, NOW), "once"
    return new.id


async def test_the_ledger_is_read_in_order(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    ids = [await asked(tenant, attempt), await asked(tenant, attempt), await asked(tenant, attempt, settled=False)]
    page = await tenant.get(f"/v1/runs/{run['id']}/model-requests?limit=2")
    assert [(one["n"], one["id"], one["state"]) for one in page["data"]] == [
        (1, ids[0], "finished"), (2, ids[1], "finished"),
    ]  # fmt: skip
    rest = await tenant.get(page["next"])
    assert [(one["n"], one["state"], one["usage_known"]) for one in rest["data"]] == [(3, "started", False)]
    assert rest["next"] is None
    first = await tenant.get(f"/v1/runs/{run['id']}/model-requests/1")
    assert first == page["data"][0]
    assert (first["cost_usd"], first["cost_basis"], first["input_tokens"]) == ("0.0123", "measured", 10)
    usage = (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["cost_usd"]) == (3, 20, "0.0246")
    assert (await tenant.client.get(f"/v1/runs/{run['id']}/model-requests/4")).status_code == 404


async def test_bodies_are_for_those_who_may_debug(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await asked(tenant, attempt)
    await asked(tenant, attempt, settled=False)
    path = f"/v1/runs/{run['id']}/model-requests/1/body"
    sent, got = [await tenant.client.get(f"{path}/{side}") for side in ("request", "response")]
    assert (sent.content, sent.headers["x-body-bytes"]) == (REQUEST, str(len(REQUEST)))
    assert (got.content, got.headers["x-body-bytes"]) == (RESPONSE, "1000")
    assert sent.headers["content-type"] == "application/octet-stream"
    assert sent.headers["content-disposition"].startswith("attachment")
    reader = await tenant.token("runs:read")
    assert (await tenant.client.get(f"{path}/request", headers=reader)).status_code == 403
    debugger = await tenant.token("runs:debug")
    assert (await tenant.client.get(f"{path}/request", headers=debugger)).status_code == 200
    missing = f"/v1/runs/{run['id']}/model-requests/2/body/request"
    assert (await tenant.client.get(missing)).status_code == 404


@pytest.mark.fault(62)
async def test_what_a_simulated_client_was_told_is_hidden(tenant: Tenant) -> None:
    run = await tenant.run()
    await asked(tenant, await tenant.start(run["id"]), purpose="client")
    path = f"/v1/runs/{run['id']}/model-requests/1/body/request"
    debugger = await tenant.token("runs:debug", "runs:read")
    answer = await tenant.client.get(path, headers=debugger)
    assert (answer.status_code, answer.json()["scope"]) == (403, "hidden:read")
    both = await tenant.token("runs:debug", "hidden:read")
    assert (await tenant.client.get(path, headers=both)).content == REQUEST


async def test_an_attempt_that_ended_asks_nothing(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    before = new_request(tenant, attempt)
    async with tenant.state.db.transaction() as tx:
        for _ in range(2):
            await model_requests.begin(tx, before)
            await model_requests.announce(tx, before.id, NOW)
        (row,) = await model_requests.list_for_run(tx, run["id"], 0, 10)
        assert row.n == 1, "a repetition is the same request"
    await tenant.finish(run["id"])
    with pytest.raises(Gone):
        async with tenant.state.db.transaction() as tx:
            await model_requests.begin(tx, new_request(tenant, attempt))
    revision = (await tenant.get(f"/v1/runs/{run['id']}"))["revision"]
    last = (await tenant.get(f"/v1/runs/{run['id']}"))["progress"]["last_seq"]
    async with tenant.state.db.transaction() as tx:
        assert await model_requests.settle(tx, before.id, Settlement(None, error="gateway_died"), NOW)
    after = await tenant.get(f"/v1/runs/{run['id']}")
    assert after["revision"] > revision
    assert after["progress"]["last_seq"] == last, "an ended log gets no more events"
    assert "usage_unknown" in after["flags"]


async def test_what_was_never_announced_is_when_it_is_settled(tenant: Tenant) -> None:
    """As after the death of a gateway between the two."""
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    new = new_request(tenant, attempt)
    async with tenant.state.db.transaction() as tx:
        await model_requests.begin(tx, new)
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]["requests"] is None, "nobody was told"
    async with tenant.state.db.transaction() as tx:
        assert await model_requests.settle(tx, new.id, Settlement(None, error="gateway_died"), NOW)
        await model_requests.announce(tx, new.id, NOW)
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]["requests"] == 1
    page = await tenant.get(f"/v1/runs/{run['id']}/events?types=model.request")
    assert [one["payload"]["state"] for one in page["data"]] == ["started", "finished"]


async def test_budgets_count_what_is_not_known_as_reserved(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await asked(tenant, attempt)
    await asked(tenant, attempt, settled=False)
    async with tenant.state.db.reading() as tx:
        spent = await model_requests.spent(tx, run["id"])
    assert (spent.requests, spent.tokens, spent.usd) == (2, 15 + 500, Decimal("0.5123"))

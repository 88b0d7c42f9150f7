"""What a run asked gateway services, over the API and in its cost; a further attempt begins its own account."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from service.domain.errors import Gone
from service.domain.ids import new_id
from service.domain.run_states import AttemptState, EndedBecause
from service.store import attempts, service_calls
from service.store.request_bodies import pack
from service.store.rows import AttemptRow
from service.store.rows_requests import CallEnd, NewCall
from tests.api.helpers import Tenant

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def new_call(one: Tenant, attempt: AttemptRow, usd: str | None = "0.25") -> NewCall:
    return NewCall(
        new_id("svq"), one.project_id, attempt.run_id, attempt.n, "gate", "images", "POST", "/images/generations",
        None if usd is None else Decimal(2), None if usd is None else Decimal(usd), date(2026, 11, 1),
    )  # fmt: skip


async def called(one: Tenant, attempt: AttemptRow, usd: str | None = "0.25", *, settled: bool = True) -> str:
    new = new_call(one, attempt, usd)
    async with one.state.db.transaction() as tx:
        await service_calls.begin(tx, new)
    if settled:
        async with one.state.db.transaction() as tx:
            assert await service_calls.settle(tx, new.id, CallEnd(200, None, 512, 1.5), NOW)
            assert not await service_calls.settle(tx, new.id, CallEnd(500), NOW), "once"
    return new.id


async def test_the_calls_are_read_in_order(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    ids = [
        await called(tenant, attempt),
        await called(tenant, attempt, None),
        await called(tenant, attempt, settled=False),
    ]
    page = await tenant.get(f"/v1/runs/{run['id']}/service-calls?limit=2")
    assert [(one["n"], one["id"], one["cost_usd"], one["units"]) for one in page["data"]] == [
        (1, ids[0], "0.25", 2.0), (2, ids[1], None, None),
    ]  # fmt: skip
    rest = await tenant.get(page["next"])
    assert [(one["n"], one["state"], one["status"]) for one in rest["data"]] == [(3, "started", None)]
    assert rest["next"] is None
    usage = (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]
    names = ("service_calls", "services_cost_usd", "models_cost_usd", "cost_usd", "cost_usd_all_attempts", "cost_basis")
    assert [usage[name] for name in names] == [2, "0.25", None, "0.25", "0.25", "measured"]
    events = await tenant.get(f"/v1/runs/{run['id']}/events?types=service.call")
    assert [(e["payload"]["call_id"], e["payload"]["price_date"]) for e in events["data"]] == [
        (ids[0], "2026-11-01"), (ids[1], "2026-11-01"),
    ]  # fmt: skip


async def test_a_further_attempt_has_an_account_of_its_own(tenant: Tenant) -> None:
    run = await tenant.run()
    first = await tenant.start(run["id"])
    await called(tenant, first)
    late = new_call(tenant, first)
    async with tenant.state.db.transaction() as tx:
        await service_calls.begin(tx, late)
        await attempts.end_lost(tx, first, EndedBecause.SANDBOX_LOST, {}, retry=True)
    second = await tenant.start(run["id"])
    assert second.n == 2
    usage = (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]
    assert (usage["service_calls"], usage["services_cost_usd"], usage["cost_usd_all_attempts"]) == (0, None, "0.25")
    async with tenant.state.db.transaction() as tx:
        assert await service_calls.settle(tx, late.id, CallEnd(None, "gateway_died"), NOW)
        with pytest.raises(Gone):
            await service_calls.begin(tx, new_call(tenant, first))
    await called(tenant, second, "1")
    usage = (await tenant.get(f"/v1/runs/{run['id']}"))["usage"]
    assert (usage["service_calls"], usage["cost_usd"], usage["cost_usd_all_attempts"]) == (1, "1", "1.5")


async def test_nothing_begins_when_the_attempt_is_over(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    async with tenant.state.db.transaction() as tx:
        await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
    with pytest.raises(Gone):
        await called(tenant, attempt)


async def test_bodies_are_for_those_who_may_debug(tenant: Tenant, other: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    await called(tenant, attempt, settled=False)
    new = new_call(tenant, attempt)
    blobs = dict([tenant.state.blobs.store_bytes(data) for data in (pack(b'{"n": 2}'), pack(b"PNG", 1000))])
    names = list(blobs)
    end = CallEnd(200, None, 1000, 1.5, request_blob=names[0], response_blob=names[1], blobs=blobs)
    async with tenant.state.db.transaction() as tx:
        await service_calls.begin(tx, new)
        await service_calls.settle(tx, new.id, end, NOW)
    page = await tenant.get(f"/v1/runs/{run['id']}/service-calls")
    bodies = [(one["has_request_body"], one["has_response_body"], one["replay_of_n"]) for one in page["data"]]
    assert bodies == [(False, False, None), (True, True, None)]
    path = f"/v1/runs/{run['id']}/service-calls/2/body"
    sent, got = [await tenant.client.get(f"{path}/{side}") for side in ("request", "response")]
    assert (sent.content, sent.headers["x-body-bytes"]) == (b'{"n": 2}', "8")
    assert (got.content, got.headers["x-body-bytes"]) == (b"PNG", "1000")
    assert sent.headers["content-disposition"].startswith("attachment")
    reader, debugger = await tenant.token("runs:read"), await tenant.token("runs:debug")
    assert (await tenant.client.get(f"{path}/request", headers=reader)).status_code == 403
    assert (await tenant.client.get(f"{path}/request", headers=debugger)).status_code == 200
    for missing in (path.replace("/2/", "/1/"), path.replace("/2/", "/3/")):
        assert (await tenant.client.get(f"{missing}/request")).status_code == 404
    assert (await other.client.get(f"{path}/request")).status_code == 404

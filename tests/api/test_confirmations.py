"""What a run waits for a person to confirm: listed, decided once, and only while it waits."""

from typing import Any

from service.domain.desktop import SafetyCheck
from service.domain.run_states import AttemptState, EndedBecause
from service.store import attempts, confirmations
from service.store.rows import AttemptRow
from tests.api.helpers import Tenant

CHECK = SafetyCheck(id="sc_1", code="malicious_instructions", message="The page asks for money.").model_dump()


async def asks(tenant: Tenant, attempt: AttemptRow, key: str = "turn-1-call-0") -> str:
    async with tenant.state.db.transaction() as tx:
        return (await confirmations.ask(tx, attempt, key, [CHECK], "to pay the bill")).id


async def decide(tenant: Tenant, run_id: str, id: str, decision: str, status: int = 200) -> Any:
    return await tenant.post(f"/v1/runs/{run_id}/confirmations/{id}", {"decision": decision}, status)


async def test_a_decision_is_made_once_and_the_run_goes_on(tenant: Tenant) -> None:
    hook = await tenant.post("/v1/webhooks", {"url": "https://hooks.example.com/in", "events": ["*"]})
    run = await tenant.run()
    id = await asks(tenant, await tenant.start(run["id"]))
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "awaiting_confirmation"
    (listed,) = (await tenant.get(f"/v1/runs/{run['id']}/confirmations"))["data"]
    assert (listed["id"], listed["state"], listed["intent"], listed["decided_by"]) == (
        id,
        "pending",
        "to pay the bill",
        None,
    )
    assert listed["checks"] == [CHECK]
    decided = await decide(tenant, run["id"], id, "acknowledge")
    assert (decided["state"], decided["decided_by"][:4]) == ("acknowledged", "tok_")
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "running"
    assert await decide(tenant, run["id"], id, "acknowledge") == decided
    problem = await decide(tenant, run["id"], id, "deny", 409)
    assert problem["type"] == "urn:workstead:problem:already_decided"
    events = (await tenant.get(f"/v1/runs/{run['id']}/events?types=confirmation"))["data"]
    assert [e["payload"]["state"] for e in events] == ["pending", "acknowledged"]
    told = (await tenant.get(f"/v1/webhooks/{hook['id']}/deliveries"))["data"]
    assert sorted(d["type"] for d in told) == ["run.awaiting_confirmation", "run.running"]  # going on is no news


async def test_it_goes_on_when_nothing_is_pending(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    first, second = await asks(tenant, attempt), await asks(tenant, attempt, "turn-1-call-1")
    assert await asks(tenant, attempt) == first  # a successor asks the same
    await decide(tenant, run["id"], first, "acknowledge")
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "awaiting_confirmation"
    await decide(tenant, run["id"], second, "deny")
    assert (await tenant.get(f"/v1/runs/{run['id']}"))["phase"] == "running"
    page = await tenant.get(f"/v1/runs/{run['id']}/confirmations?limit=1")
    assert [one["id"] for one in page["data"]] == [second]
    assert [one["id"] for one in (await tenant.get(page["next"]))["data"]] == [first]


async def test_nobody_decides_what_is_over(tenant: Tenant) -> None:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    id = await asks(tenant, attempt)
    async with tenant.state.db.transaction() as tx:
        await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.WALL_CLOCK)
    (listed,) = (await tenant.get(f"/v1/runs/{run['id']}/confirmations"))["data"]
    assert listed["state"] == "lapsed"
    problem = await decide(tenant, run["id"], id, "acknowledge", 409)
    assert problem["type"] == "urn:workstead:problem:confirmation_over"


async def test_who_may(tenant: Tenant, other: Tenant) -> None:
    run = await tenant.run()
    id = await asks(tenant, await tenant.start(run["id"]))
    path = f"/v1/runs/{run['id']}/confirmations/{id}"
    reader = await tenant.token("runs:read")
    assert (await tenant.client.post(path, json={"decision": "deny"}, headers=reader)).status_code == 403
    assert (await tenant.client.get(f"/v1/runs/{run['id']}/confirmations", headers=reader)).status_code == 200
    await decide(other, run["id"], id, "acknowledge", 404)
    await other.get(f"/v1/runs/{run['id']}/confirmations", 404)
    await decide(tenant, (await tenant.run(sample=2))["id"], id, "deny", 404)
    for body in ({}, {"decision": "maybe"}, {"decision": "deny", "by": "me"}):
        await tenant.post(path, body, 422)
    (listed,) = (await tenant.get(f"/v1/runs/{run['id']}/confirmations"))["data"]
    assert listed["state"] == "pending"

"""``POST /v1/runs/{id}/rerun``: the same again, with what is to be different, fresh or from the recording."""

from typing import Any

import pytest

from service.domain.run_states import AttemptState, EndedBecause
from service.store import attempts, runs
from service.store.tables_models import model_requests, service_calls
from tests.api.helpers import Tenant

LIMITS = {"wall_clock_s": 700, "memory_bytes": 1 << 30}


async def _ended(tenant: Tenant, *, recorded: bool) -> Any:
    run = await tenant.run(sample=3, labels={"week": "48"}, limits=LIMITS, budget={"max_requests": 7}, priority=5)
    attempt = await tenant.start(run["id"])
    async with tenant.state.db.transaction() as tx:
        await attempts.advance(tx, attempt, AttemptState.ENDED, ended_because=EndedBecause.COMPLETED)
        values = {"id": f"mrq_{run['id']}", "project_id": tenant.project_id, "run_id": run["id"], "attempt": 1, "n": 1}
        blob = "0" * 64 if recorded else None
        await tx.execute(model_requests.insert().values(**values, request_blob=blob))
    return await tenant.get(f"/v1/runs/{run['id']}")


async def _rerun(tenant: Tenant, run: Any, body: Any, status: int = 201) -> Any:
    return await tenant.post(f"/v1/runs/{run['id']}/rerun", body, status)


async def _limits(tenant: Tenant, run: Any) -> dict[str, Any]:
    async with tenant.state.db.reading() as tx:
        return (await runs.load(tx, run["id"])).limits.model_dump()


async def test_a_fresh_rerun_is_the_run_again(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=False)
    again = await _rerun(tenant, run, {})
    assert again["id"] != run["id"]
    assert (again["phase"], again["derived_from"], again["replay_of"]) == ("queued", run["id"], None)
    for field in ("task", "agent", "sample", "labels"):
        assert again[field] == run[field], field
    assert again["flags"] == []
    limits = await _limits(tenant, again)
    assert limits == await _limits(tenant, run)
    assert limits["wall_clock_s"] == 700


async def test_a_rerun_of_a_run_that_still_runs_may_be_fresh(tenant: Tenant) -> None:
    run = await tenant.run()
    await tenant.start(run["id"])
    assert (await _rerun(tenant, run, {"mode": "fresh"}))["derived_from"] == run["id"]
    problem = await _rerun(tenant, run, {"mode": "replay"}, 409)
    assert problem["type"].endswith(":run_not_ended")


async def test_a_replay_names_its_recording_and_is_flagged(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=True)
    again = await _rerun(tenant, run, {"mode": "replay"})
    assert (again["derived_from"], again["replay_of"], again["flags"]) == (run["id"], run["id"], ["replayed"])


async def test_without_a_recording_there_is_nothing_to_replay(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=False)
    problem = await _rerun(tenant, run, {"mode": "replay"}, 422)
    assert problem["type"].endswith(":no_recording")


@pytest.mark.parametrize("kind", ["client", "service"])
async def test_a_run_that_asked_a_client_or_a_service_has_a_recording(tenant: Tenant, kind: str) -> None:
    run = await _ended(tenant, recorded=False)
    values = {"id": "x_1", "project_id": tenant.project_id, "run_id": run["id"], "attempt": 1, "n": 2}
    async with tenant.state.db.transaction() as tx:
        if kind == "client":
            query = model_requests.insert().values(**values, purpose="client", request_blob="0" * 64)
        else:
            told = {"gateway_id": "g", "service": "search", "method": "GET", "path": "/", "request_blob": "0" * 64}
            query = service_calls.insert().values(**values, **told)
        await tx.execute(query)
    assert (await _rerun(tenant, run, {"mode": "replay"}))["replay_of"] == run["id"]


async def test_overrides_replace_what_they_name(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=False)
    again = await _rerun(tenant, run, {"overrides": {"limits": {"wall_clock_s": 60}, "labels": {}, "network": "web"}})
    limits = await _limits(tenant, again)
    assert (limits["wall_clock_s"], limits["memory_bytes"]) == (60, 1 << 30)
    assert (again["labels"], again["flags"], again["agent"]) == ({}, ["policy_changed"], run["agent"])


async def test_other_settings_make_another_agent(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=False)
    first = await _rerun(tenant, run, {"overrides": {"settings": {"max_turns": 3}}})
    agent = await tenant.get(f"/v1/agents/{first['agent']['id']}")
    assert agent["settings"] == {"max_turns": 3}
    assert first["agent"]["id"] != run["agent"]["id"]
    assert (await _rerun(tenant, run, {"overrides": {"settings": {"max_turns": 3}}}))["agent"] == first["agent"]
    back = await _rerun(tenant, first, {"overrides": {"settings": {"max_turns": None}}})
    assert back["agent"] == run["agent"]


async def test_bad_overrides_are_refused(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=False)
    for body, status, kind in (
        ({"overrides": {"limits": {"wall_clock_s": -1}}}, 422, "bad_limits"),
        ({"overrides": {"model": "no/such"}}, 422, "model_not_found"),
        ({"overrides": {"settings": {"max_turns": "many"}}}, 422, "bad_settings"),
        ({"overrides": {"task": "t"}}, 422, "invalid_request"),
        ({"mode": "backwards"}, 422, "invalid_request"),
    ):
        problem = await _rerun(tenant, run, body, status)
        assert problem["type"].endswith(f":{kind}"), problem


async def test_who_may(tenant: Tenant, other: Tenant) -> None:
    run = await _ended(tenant, recorded=True)
    path = f"/v1/runs/{run['id']}/rerun"
    assert (await other.client.post(path, json={})).status_code == 404
    plain = await tenant.token("runs:write", "runs:read")
    assert (await tenant.client.post(path, json={}, headers=plain)).status_code == 201
    changed = {"overrides": {"settings": {"max_turns": 3}}}
    assert (await tenant.client.post(path, json=changed, headers=plain)).status_code == 403
    assert (await tenant.client.post(path, json={}, headers=await tenant.token("runs:read"))).status_code == 403


async def test_a_key_makes_one_run(tenant: Tenant) -> None:
    run = await _ended(tenant, recorded=True)
    key = {"Idempotency-Key": "k"}
    answers = [await tenant.client.post(f"/v1/runs/{run['id']}/rerun", json={}, headers=key) for _ in range(2)]
    assert answers[0].status_code == 201
    assert answers[0].json()["id"] == answers[1].json()["id"]

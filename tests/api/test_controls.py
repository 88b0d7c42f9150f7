"""Altered-work controls through the API: asked for, made by the operation, figures as verdicts come."""

from typing import Any

import pytest

from service.domain.campaigns import Selection
from service.domain.verdicts import Verdict, VerdictState
from service.lifecycle.operations.contract import OperationContext
from service.lifecycle.operations.perform import perform
from service.store import gradings, operations, regrades, runs
from service.store.campaigns import selecting
from service.store.rows import RunFilter
from tests.api.helpers import Tenant


async def delivered(tenant: Tenant, text: bytes = b"a whole report", **task: Any) -> str:
    """An uploaded deliverable with a pending grading; the run."""
    made = await tenant.task(graders=[{"method": "integrity"}], **task)
    files = [{"path": "report.md", "sha256": await tenant.blob(text)}]
    return (await tenant.post("/v1/gradings", {"task": made["id"], "files": files}))["id"]


async def decide(tenant: Tenant, run_id: str, score: float | None) -> None:
    verdict = Verdict(VerdictState.ABSTAINED, cause="panel_tied")
    if score is not None:
        verdict = Verdict(VerdictState.GRADED, score=score, max_score=1.0)
    async with tenant.state.db.transaction() as tx:
        for grading in await gradings.list_for_run(tx, run_id):
            await gradings.finish(tx, grading.id, verdict)


async def made(tenant: Tenant, body: dict[str, Any]) -> str:
    operation = await tenant.post("/v1/controls", body, 202)
    await perform(OperationContext(tenant.state.db, tenant.state.blobs, first_pause_s=0.01), operation["id"])
    return operation["id"]


async def control_of(tenant: Tenant, run_id: str) -> str:
    async with tenant.state.db.reading() as tx:
        where = RunFilter(labels={"of": run_id}, flag=("control",))
        return (await runs.list(tx, tenant.project_id, where)).items[0].id


async def test_from_request_to_figures(tenant: Tenant) -> None:
    first, second = await delivered(tenant), await delivered(tenant, b"another one", name="t/two")
    operation_id = await made(tenant, {"kinds": ["empty"], "filter": {}, "accepted_from": 0.5})
    found = await tenant.get(f"/v1/controls/{operation_id}")
    assert (found["state"], found["done"], found["originals"], found["plan"]) == ("succeeded", False, 2, None)
    (kind,) = found["kinds"]
    assert (kind["kind"], kind["controls"], kind["outcomes"]) == ("empty", 2, {"made": 2})
    assert (kind["pairs"], kind["excluded"], kind["difference"]) == (
        0,
        {"unfinished": 2},
        {"mean": None, "interval": None},
    )
    for run_id, (score, altered) in {first: (0.75, 0.25), second: (1.0, None)}.items():
        await decide(tenant, run_id, score)
        await decide(tenant, await control_of(tenant, run_id), altered)
    found = await tenant.get(f"/v1/controls/{operation_id}")
    (kind,) = found["kinds"]
    assert (found["done"], kind["pairs"], kind["excluded"]) == (True, 1, {"abstained": 1})
    assert kind["originals"] == {"n": 1, "accepted": 1, "acceptance": 1.0, "mean_fraction": 0.75}
    assert kind["altered"] == {"n": 1, "accepted": 0, "acceptance": 0.0, "mean_fraction": 0.25}
    assert kind["difference"] == {"mean": -1.0, "interval": None}


async def test_a_filter_means_no_controls_and_nothing_empty(tenant: Tenant) -> None:
    await delivered(tenant)
    nothing = await tenant.task(graders=[{"method": "integrity"}], name="t/nothing")
    await tenant.post("/v1/gradings", {"task": nothing["id"], "files": []})
    await made(tenant, {"kinds": ["empty", "quarter"], "filter": {}})
    again = await made(tenant, {"kinds": ["empty", "quarter"], "filter": {}})
    found = await tenant.get(f"/v1/controls/{again}")
    assert found["originals"] == 1
    assert [one["outcomes"] for one in found["kinds"]] == [{"found": 1}, {"found": 1}]


async def test_the_same_key_makes_one_operation(tenant: Tenant) -> None:
    body = {"kinds": ["empty"], "runs": [await delivered(tenant)]}
    key = {"Idempotency-Key": "one"}
    assert (await tenant.post("/v1/controls", body, 202, **key)) == (
        await tenant.post("/v1/controls", body, 202, **key)
    )


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({"kinds": ["empty"], "filter": {}}, 422, "no_runs"),
        ({"kinds": ["empty"], "runs": ["run_0"]}, 404, "run_not_found"),
        ({"kinds": ["weaker"], "filter": {}, "weaker": "nobody"}, 404, "agent_not_found"),
        ({"kinds": ["empty"], "filter": {}, "plan": "none@4"}, 404, "plan_not_found"),
        ({"kinds": ["weaker"], "filter": {}}, 422, "invalid_request"),
        ({"kinds": ["empty"], "filter": {}, "weaker": "x"}, 422, "invalid_request"),
        ({"kinds": [], "filter": {}}, 422, "invalid_request"),
        ({"kinds": ["empty", "empty"], "filter": {}}, 422, "invalid_request"),
        ({"kinds": ["third"], "filter": {}}, 422, "invalid_request"),
        ({"kinds": ["empty"], "filter": {}, "runs": ["run_0"]}, 422, "invalid_request"),
        ({"kinds": ["empty"]}, 422, "invalid_request"),
        ({"kinds": ["empty"], "filter": {"colour": ["x"]}}, 422, "invalid_request"),
        ({"kinds": ["empty"], "filter": {}, "accepted_from": 0}, 422, "invalid_request"),
    ],
)
async def test_bad_requests(tenant: Tenant, body: dict[str, Any], status: int, problem: str) -> None:
    answer = await tenant.post("/v1/controls", body, status)
    assert answer["type"] == f"urn:workstead:problem:{problem}"


async def test_others_runs_and_operations_are_not_there(tenant: Tenant, other: Tenant) -> None:
    run_id = await delivered(tenant)
    foreign = await other.post("/v1/controls", {"kinds": ["empty"], "runs": [run_id]}, 404)
    unknown = await other.post("/v1/controls", {"kinds": ["empty"], "runs": [run_id[:-1] + "x"]}, 404)
    assert foreign["type"] == unknown["type"] == "urn:workstead:problem:run_not_found"
    operation = await tenant.post("/v1/controls", {"kinds": ["empty"], "runs": [run_id]}, 202)
    await other.get(f"/v1/controls/{operation['id']}", 404)


async def test_another_kind_of_operation_has_no_figures(tenant: Tenant) -> None:
    async with tenant.state.db.transaction() as tx:
        row = await operations.create(tx, tenant.project_id, "film", {"run_id": "run_0"})
    await tenant.get(f"/v1/controls/{row.id}", 404)


async def test_scopes(tenant: Tenant) -> None:
    body = {"kinds": ["empty"], "runs": [await delivered(tenant)]}
    headers = await tenant.token("gradings:read")
    assert (await tenant.client.post("/v1/controls", json=body, headers=headers)).status_code == 403
    operation = await tenant.post("/v1/controls", body, 202)
    path = f"/v1/controls/{operation['id']}"
    assert (await tenant.client.get(path, headers=headers)).status_code == 200
    assert (await tenant.client.get(path, headers=await tenant.token("runs:read"))).status_code == 403


async def test_a_choice_of_runs_for_grading_or_rating_has_no_controls_in_it(tenant: Tenant) -> None:
    run_id = await delivered(tenant)
    await made(tenant, {"kinds": ["empty"], "runs": [run_id]})
    control = await control_of(tenant, run_id)
    async with tenant.state.db.reading() as tx:
        for where, expected in (
            (RunFilter(), [run_id]),
            (RunFilter(flag=("control",)), [control]),
            (RunFilter(ids=(run_id, control)), [run_id, control]),
        ):
            found = await regrades.candidates(tx, tenant.project_id, where, None, 10)
            assert [one.run_id for one in found] == expected
        selected = await selecting.candidates(tx, tenant.project_id, Selection(), "category")
        assert [one.run_id for one in selected] == [run_id]

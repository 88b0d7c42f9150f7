"""JobBench's result files through the API: out, in again, refused where they do not hold."""

import json
from typing import Any

from service.domain.judging import Vote, VoteState
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.graders.rubric_chain import rubrics_file, scoring
from service.store import gradings, runs
from tests.api.helpers import Tenant, file_entry

RUBRICS: dict[str, Any] = {
    "rubrics": [
        {"rubric": "Totals", "weight": 10, "criterion": ["North", "South"]},
        {"rubric": "Words", "weight": 6, "criterion": ["Summary"]},
    ]
}


def decided(*passed: bool) -> Verdict:
    """The verdict of a judge that passes or fails all criteria of each rubric."""
    found: list[scoring.Decided] = []
    for rubric, holds in zip(rubrics_file.parse(RUBRICS), passed, strict=True):
        results = [
            {"index": n, "reasoning": f"why {n}", "evidence": "a", "passed": holds}
            for n in range(1, len(rubric.criteria) + 1)
        ]
        content = {"criteria_results": results, "overall_reasoning": "so", "rubric_passed": holds}
        found.append(scoring.decide(rubric, [Vote("j", scoring.item(rubric), 1, VoteState.VALID, content)]))
    return scoring.verdict(found, {"reading": "full"})


async def sealed(tenant: Tenant) -> str:
    data = json.dumps(RUBRICS).encode()
    hidden = [{"path": "RUBRICS.json", "sha256": await tenant.blob(data), "size_bytes": len(data)}]
    task, agent = await tenant.task(hidden=hidden), await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    return run["id"]


async def graded(tenant: Tenant, run_id: str, verdict: Verdict, method: str = "rubric_chain") -> str:
    settings = {"judges": [{"model": "acme/judge-1.5"}]}
    async with tenant.state.db.transaction() as tx:
        spec = GraderSpec(method=method, settings=settings)
        [row] = await gradings.enqueue(tx, await runs.load(tx, run_id), [spec])
        await gradings.finish(tx, row.id, verdict)
    return row.id


async def test_a_grading_goes_out_and_comes_in_again(tenant: Tenant) -> None:
    run_id = await sealed(tenant)
    grading_id = await graded(tenant, run_id, decided(True, False))
    answer = await tenant.client.get(f"/v1/gradings/{grading_id}/jobbench")
    assert answer.headers["content-disposition"].startswith('attachment; filename="acme-judge-1-5_judge.json"')
    file = answer.json()
    assert (file["total_score"], file["max_score"], file["pass_rate"], file["judge_model"]) == (
        10,
        16,
        "50%",
        "acme/judge-1.5",
    )
    assert file["evaluated_model"] == (await tenant.get(f"/v1/runs/{run_id}"))["agent"]["label"]

    path = f"/v1/runs/{run_id}/gradings/jobbench"
    made = await tenant.post(path, {"result": file})
    assert (made["state"], made["score"], made["max_score"], made["primary"]) == ("graded", 10, 16, False)
    assert (made["method"], made["method_version"]) == ("rubric_chain", "imported")
    assert made["detail"]["judge_model"] == "acme/judge-1.5"
    assert made["detail"]["provenance"] == "imported"
    assert [c["id"] for c in made["criteria"]] == ["r1", "r1.c1", "r1.c2", "r2", "r2.c1"]
    assert (await tenant.post(path, {"result": file}))["id"] == made["id"], "once, however often it is given"
    assert (await tenant.client.get(f"/v1/gradings/{made['id']}/jobbench")).json() == file | {"timestamp": _now(made)}
    run = await tenant.get(f"/v1/runs/{run_id}")
    assert (run["verdict"]["score"], run["verdict"]["max_score"]) == (10, 16)


def _now(made: dict[str, Any]) -> str:
    return made["graded_at"][:19] + "+00:00"


async def test_as_primary_it_is_the_runs_verdict_with_its_vote(tenant: Tenant) -> None:
    run_id = await sealed(tenant)
    own = await graded(tenant, run_id, decided(True, True))
    file = await tenant.get(f"/v1/gradings/{own}/jobbench")
    file["rubrics"][0]["result"] |= {"passed": False, "score": 0, "criteria_passed": 1}
    file["rubrics"][0]["result"]["criteria_results"][0]["passed"] = False
    file |= {"total_score": 6, "passed_count": 1, "pass_rate": "50%"}
    made = await tenant.post(f"/v1/runs/{run_id}/gradings/jobbench", {"result": file, "primary": True})
    assert (made["primary"], made["round"]) == (True, 2)
    run = await tenant.get(f"/v1/runs/{run_id}")
    assert (run["phase"], run["verdict"]["score"], run["verdict"]["max_score"]) == ("done", 6, 16)


async def test_what_does_not_hold_is_refused_with_every_place(tenant: Tenant) -> None:
    run_id = await sealed(tenant)
    own = await graded(tenant, run_id, decided(True, True))
    file = await tenant.get(f"/v1/gradings/{own}/jobbench")
    path = f"/v1/runs/{run_id}/gradings/jobbench"
    wrong: list[Any] = [
        {"result": {}},
        {"result": file | {"total_score": 99}},
        {"result": file | {"rubrics": file["rubrics"][:1]}},
    ]
    for body in wrong:
        problem = await tenant.post(path, body, 422)
        assert problem["type"] == "urn:workstead:problem:bad_jobbench_result"
        assert problem["problems"]
    assert len((await tenant.get(f"/v1/runs/{run_id}/gradings"))["data"]) == 1


async def test_only_what_is_graded_by_rubrics_goes_out_and_only_to_who_may_see_them(tenant: Tenant) -> None:
    run_id = await sealed(tenant)
    own = await graded(tenant, run_id, decided(True, True))
    failed = await graded(tenant, run_id, Verdict(VerdictState.FAILED, cause="judge_error"), "exact")
    assert (await tenant.get(f"/v1/gradings/{failed}/jobbench", 409))["type"].endswith(":not_rubric_chain")
    async with tenant.state.db.transaction() as tx:
        [row] = await gradings.enqueue(tx, await runs.load(tx, run_id), [GraderSpec(method="rubric_chain")], 2)
    assert (await tenant.get(f"/v1/gradings/{row.id}/jobbench", 409))["type"].endswith(":not_graded")
    headers = await tenant.token("gradings:read")
    answer = await tenant.client.get(f"/v1/gradings/{own}/jobbench", headers=headers)
    assert answer.status_code == 403


async def test_a_run_that_delivered_nothing_yet_takes_none(tenant: Tenant) -> None:
    sealed_run = await sealed(tenant)
    file = await tenant.get(f"/v1/gradings/{await graded(tenant, sealed_run, decided(True, True))}/jobbench")
    task, agent = await tenant.task(name="t/other"), await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    problem = await tenant.post(f"/v1/runs/{run['id']}/gradings/jobbench", {"result": file}, 409)
    assert problem["type"].endswith(":run_not_sealed")


async def test_texts_of_rubrics_are_shown_to_who_may_see_hidden_assets(tenant: Tenant) -> None:
    grading_id = await graded(tenant, await sealed(tenant), decided(True, True))
    [rubric, criterion, *_] = (await tenant.get(f"/v1/gradings/{grading_id}"))["criteria"]
    assert (rubric["detail"]["rubric"], criterion["detail"]["criterion"]) == ("Totals", "North")
    headers = await tenant.token("gradings:read")
    for path, key in ((f"/v1/gradings/{grading_id}", "criteria"), (f"/v1/gradings/{grading_id}/criteria", "data")):
        answer = await tenant.client.get(path, headers=headers)
        rows = answer.json()[key]
        assert [row["passed"] for row in rows] == [True] * 5
        assert "Totals" not in answer.text
        assert "North" not in answer.text

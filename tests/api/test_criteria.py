"""Criteria of a grading: inline up to a bound, then page by page, chosen by cause; never another project's."""

from typing import Any

from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, runs
from tests.api.helpers import Tenant, file_entry

MANY = 230


def criterion(number: int) -> dict[str, Any]:
    cause = "timeout" if number % 10 == 0 else None
    return {
        "id": f"t{number}", "score": float(cause is None), "max_score": 1.0, "passed": cause is None, "cause": cause,
        "reason": "over \x00 the limit" if cause else "", "detail": {"wall_s": number / 10, "text": "\ud800"},
    }  # fmt: skip


async def graded(tenant: Tenant, many: int) -> str:
    task, agent = await tenant.task(), await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    async with tenant.state.db.transaction() as tx:
        (row,) = await gradings.enqueue(tx, await runs.load(tx, run["id"]), [GraderSpec(method="test_cases")])
        detail = {"solved": False, "wrong": many // 10}
        criteria = [criterion(n) for n in range(many)]
        await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, 1.0, 2.0, criteria=criteria, detail=detail))
        # The job that was delivered twice finds it ended.
        await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, 2.0, 2.0, criteria=criteria[:1]))
    return row.id


async def test_the_first_are_inline_and_all_are_listed(tenant: Tenant) -> None:
    grading_id = await graded(tenant, MANY)
    grading = await tenant.get(f"/v1/gradings/{grading_id}")
    assert (len(grading["criteria"]), grading["criteria_total"], grading["score"]) == (100, MANY, 1.0)
    assert grading["detail"] == {"solved": False, "wrong": 23}
    first = grading["criteria"][0]
    assert (first["id"], first["cause"], first["passed"]) == ("t0", "timeout", False)
    assert "\0" not in first["reason"]
    listed: list[str] = []
    path: str | None = f"/v1/gradings/{grading_id}/criteria?limit=100"
    while path is not None:
        page = await tenant.get(path)
        listed += [c["id"] for c in page["data"]]
        path = page["next"]
    assert listed == [f"t{n}" for n in range(MANY)]


async def test_they_are_chosen_by_cause_and_result(tenant: Tenant) -> None:
    path = f"/v1/gradings/{await graded(tenant, 40)}/criteria"
    late = await tenant.get(f"{path}?cause=timeout&limit=3")
    rest = await tenant.get(late["next"])
    assert [c["id"] for c in late["data"] + rest["data"]] == ["t0", "t10", "t20", "t30"]
    assert rest["next"] is None
    assert len((await tenant.get(f"{path}?passed=true"))["data"]) == 36
    assert (await tenant.get(f"{path}?cause=crash"))["data"] == []
    for wrong in ("cursor=AAAA", "limit=0", "color=red", "passed=maybe"):
        await tenant.get(f"{path}?{wrong}", 422)


async def test_they_belong_to_their_project(tenant: Tenant, other: Tenant) -> None:
    grading_id = await graded(tenant, 2)
    await other.get(f"/v1/gradings/{grading_id}/criteria", 404)
    await tenant.get("/v1/gradings/grd_unknown/criteria", 404)

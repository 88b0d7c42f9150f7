"""Contests and overrides: the old verdict is kept, the run follows the newest that stands, and reports count it."""

from typing import Any

from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.lifecycle.report import report
from service.store import gradings, runs
from service.store.rows import RunFilter
from tests.api.helpers import Tenant, file_entry


async def graded(tenant: Tenant, *verdicts: Verdict) -> tuple[str, list[str]]:
    """A run whose gradings end so; its id and theirs."""
    run = await tenant.run()
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    specs = [GraderSpec(method="exact", settings={"n": n}) for n in range(len(verdicts))]
    async with tenant.state.db.transaction() as tx:
        rows = await gradings.enqueue(tx, await runs.load(tx, run["id"]), specs)
        for row, verdict in zip(rows, verdicts, strict=True):
            await gradings.finish(tx, row.id, verdict)
    return run["id"], [row.id for row in rows]


async def verdict(tenant: Tenant, run_id: str) -> tuple[Any, ...]:
    run = await tenant.get(f"/v1/runs/{run_id}")
    said = run["verdict"]
    return run["outcome"], said["state"], said["score"], said["max_score"], "overridden" in run["flags"]


async def overridden(tenant: Tenant) -> int:
    async with tenant.state.db.reading() as tx:
        return (await report(tx, tenant.project_id, RunFilter())).overridden


async def test_an_override_is_followed_kept_beside_and_taken_back(tenant: Tenant) -> None:
    run_id, (one, other) = await graded(
        tenant, Verdict(VerdictState.GRADED, 1.0, 4.0), Verdict(VerdictState.GRADED, 2.0, 2.0)
    )
    assert await verdict(tenant, run_id) == ("graded", "graded", 3.0, 6.0, False)
    path = f"/v1/gradings/{one}"
    first = await tenant.post(f"{path}/override", {"score": 4, "reason": "It is all there.", "author": "Ada"})
    assert (first["kind"], first["author"], first["max_score"], first["withdrawn_at"]) == ("override", "Ada", 4.0, None)
    assert await verdict(tenant, run_id) == ("graded", "graded", 6.0, 6.0, True)
    assert await overridden(tenant) == 1
    second = await tenant.post(f"{path}/override", {"score": 0, "max_score": 1, "reason": "No, it is not."})
    assert await verdict(tenant, run_id) == ("graded", "graded", 2.0, 3.0, True)
    shown = await tenant.get(path)
    assert (shown["score"], shown["max_score"], shown["override"]["id"]) == (1.0, 4.0, second["id"])
    assert second["author"].startswith("tok_")
    for _ in range(2):
        await tenant.post(f"/v1/reviews/{second['id']}/withdraw", None, 200)
        assert await verdict(tenant, run_id) == ("graded", "graded", 6.0, 6.0, True)
    await tenant.post(f"/v1/reviews/{first['id']}/withdraw", None, 200)
    assert await verdict(tenant, run_id) == ("graded", "graded", 3.0, 6.0, False)
    assert await overridden(tenant) == 0
    listed = (await tenant.get(f"/v1/reviews?run_id={run_id}&sort=created_at"))["data"]
    assert [(r["id"], r["withdrawn_at"] is not None) for r in listed] == [(first["id"], True), (second["id"], True)]
    assert (await tenant.get(f"/v1/gradings/{other}"))["override"] is None
    said = (await tenant.get(f"/v1/runs/{run_id}/events?types=verdict&limit=50"))["data"]
    assert [e["payload"].get("overridden") for e in said] == [None, None, True, True, True, False]


async def test_a_contest_changes_nothing_and_is_shown(tenant: Tenant) -> None:
    run_id, (one,) = await graded(tenant, Verdict(VerdictState.GRADED, 1.0, 4.0))
    before = await verdict(tenant, run_id)
    made = await tenant.post(f"/v1/gradings/{one}/contest", {"reason": "Page 2 was not read."})
    assert await verdict(tenant, run_id) == before
    assert (await tenant.get(f"/v1/gradings/{one}"))["contests"] == 1
    await tenant.post(f"/v1/reviews/{made['id']}/withdraw", None, 200)
    assert (await tenant.get(f"/v1/runs/{run_id}/gradings"))["data"][0]["contests"] == 0


async def test_a_failed_grading_can_be_given_a_score(tenant: Tenant) -> None:
    run_id, (one,) = await graded(tenant, Verdict(VerdictState.FAILED, cause="judge_error"))
    assert (await verdict(tenant, run_id))[:2] == ("ungraded", "failed")
    made = await tenant.post(f"/v1/gradings/{one}/override", {"score": 0.5, "reason": "Read by hand."})
    assert made["max_score"] == 1.0
    assert await verdict(tenant, run_id) == ("graded", "graded", 0.5, 1.0, True)


async def test_what_is_no_override_is_refused(tenant: Tenant) -> None:
    run_id, (one,) = await graded(tenant, Verdict(VerdictState.GRADED, 1.0, 4.0))
    path = f"/v1/gradings/{one}/override"
    for body in (
        {"score": 5, "reason": "more"},
        {"score": -1, "reason": "less"},
        {"score": 1},
        {"score": 1, "reason": ""},
    ):
        await tenant.post(path, body, 422)
    answer = await tenant.client.post(
        path, content=b'{"score": NaN, "reason": "x"}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    readers = await tenant.token("gradings:read")
    refused = await tenant.client.post(path, json={"score": 1, "reason": "x"}, headers=readers)
    assert refused.status_code == 403
    async with tenant.state.db.transaction() as tx:
        (row,) = await gradings.enqueue(tx, await runs.load(tx, run_id), [GraderSpec(method="exact")], round=2)
    early = await tenant.post(f"/v1/gradings/{row.id}/contest", {"reason": "why"}, 409)
    assert early["type"].endswith(":grading_not_ended")


async def test_a_repeated_request_is_one_override(tenant: Tenant) -> None:
    run_id, (one,) = await graded(tenant, Verdict(VerdictState.GRADED, 1.0, 4.0))
    path, body = f"/v1/gradings/{one}/override", {"score": 2, "reason": "half"}
    made = [await tenant.post(path, body, 201, **{"Idempotency-Key": "once"}) for _ in range(2)]
    assert made[0] == made[1]
    assert len((await tenant.get(f"/v1/reviews?run_id={run_id}"))["data"]) == 1

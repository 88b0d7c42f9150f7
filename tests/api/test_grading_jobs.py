"""Open gradings are cancelled, failed ones are counted and come back; never another project's, never more than was named."""

from typing import Any

import pytest

from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, runs
from tests.api.helpers import Tenant, file_entry

SPECS = [GraderSpec(method="exact", settings={"file": name}) for name in "abc"]


async def failed(tenant: Tenant, *causes: str | None) -> tuple[str, list[str]]:
    """Return a run and its gradings, each failed of a cause, or open."""
    task, agent = await tenant.task(), await tenant.agent()
    run = await tenant.post("/v1/runs", {"task": task["id"], "agent": agent["id"]})
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    async with tenant.state.db.transaction() as tx:
        for row in await gradings.list_for_run(tx, run["id"]):
            await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, 1.0, 1.0))
        rows = await gradings.enqueue(tx, await runs.load(tx, run["id"]), SPECS[: len(causes)], round=2)
        for row, cause in zip(rows, causes, strict=True):
            if cause is not None:
                await gradings.finish(tx, row.id, Verdict(VerdictState.FAILED, cause=cause))
    return run["id"], [row.id for row in rows]


async def states(tenant: Tenant, ids: list[str]) -> list[tuple[str, str | None]]:
    found = [await tenant.get(f"/v1/gradings/{one}") for one in ids]
    return [(one["state"], one["cause"]) for one in found]


async def test_the_dead_letter_is_counted_and_replayed_by_cause(tenant: Tenant, other: Tenant) -> None:
    run_id, ids = await failed(tenant, "judge_unavailable", "judge_error", "judge_error")
    letter = (await tenant.get("/v1/gradings/dead-letter"))["data"]
    assert [(r["cause"], r["gradings"], r["runs"]) for r in letter] == [
        ("judge_error", 2, 1),
        ("judge_unavailable", 1, 1),
    ]
    assert (await other.get("/v1/gradings/dead-letter"))["data"] == []
    assert (await tenant.get(f"/v1/runs/{run_id}"))["outcome"] == "ungraded"
    none = {"replayed": 0, "more": False}
    assert await other.post("/v1/gradings/replay", {"all": True}, status=200) == none
    assert await other.post("/v1/gradings/replay", {"ids": ids}, status=200) == none
    one = {"replayed": 1, "more": False}
    assert await tenant.post("/v1/gradings/replay", {"cause": ["judge_unavailable"]}, status=200) == one
    assert await states(tenant, ids) == [("pending", None), ("failed", "judge_error"), ("failed", "judge_error")]
    run = await tenant.get(f"/v1/runs/{run_id}")
    assert (run["phase"], run["outcome"], run["verdict"]["state"]) == ("grading", None, "pending")
    assert (await tenant.post("/v1/gradings/replay", {"all": True}, status=200))["replayed"] == 2


async def test_open_ones_are_cancelled_and_come_back_only_by_name(tenant: Tenant, other: Tenant) -> None:
    _, ids = await failed(tenant, None, None, "judge_error")
    assert (await other.client.post(f"/v1/gradings/{ids[0]}/cancel")).status_code == 404
    assert (await other.post("/v1/gradings/cancel", {"all": True}, status=200))["cancelled"] == 0
    for times in (1, 0):
        assert (await tenant.post(f"/v1/gradings/{ids[0]}/cancel", None, status=200))["cancelled"] == times
    assert await states(tenant, ids) == [("failed", "cancelled"), ("pending", None), ("failed", "judge_error")]
    assert (await tenant.post("/v1/gradings/cancel", {"method": ["exact"]}, status=200))["cancelled"] == 1
    assert (await tenant.post("/v1/gradings/replay", {"all": True}, status=200))["replayed"] == 1
    assert (await tenant.post("/v1/gradings/replay", {"cause": ["cancelled"]}, status=200))["replayed"] == 2


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": []}, {"all": False}, {"ids": "grd_1"}, {"cause": [""]}, {"color": ["red"]}, {"ids": ["x"] * 201}],
)
async def test_nothing_named_is_nothing_done(tenant: Tenant, body: dict[str, Any]) -> None:
    for how in ("cancel", "replay"):
        assert (await tenant.client.post(f"/v1/gradings/{how}", json=body)).status_code == 422, how

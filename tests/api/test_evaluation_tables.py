"""Result tables of an evaluation over the API: every table in every format, counted by its policies, nobody else's."""

import csv
import io
import json
from typing import Any

import polars as pl
import pytest

from service.reporting.dictionary import TABLES
from service.reporting.frames import schema
from service.store.result_tables.reading import QUERIES, pieces
from service.store.result_tables.scope import Scope, heads
from service.store.rows import RunFilter
from tests.api.helpers import Tenant
from tests.api.results import filled


async def table(one: Tenant, evaluation_id: str, name: str, **headers: str) -> list[dict[str, Any]]:
    answer = await one.client.get(f"/v1/evaluations/{evaluation_id}/tables/{name}.json", headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


async def test_each_table_is_the_same_in_every_format(tenant: Tenant) -> None:
    evaluation_id, _ = await filled(tenant)
    listed = (await tenant.get(f"/v1/evaluations/{evaluation_id}/tables"))["data"]
    assert [one["name"] for one in listed] == [*QUERIES]
    for name in QUERIES:
        path = f"/v1/evaluations/{evaluation_id}/tables/{name}"
        rows = await table(tenant, evaluation_id, name)
        text = (await tenant.client.get(f"{path}.csv")).text
        lines = [*csv.DictReader(io.StringIO(text, newline=""))]
        frame = pl.read_parquet((await tenant.client.get(f"{path}.parquet")).content)
        assert frame.height == len(lines) == len(rows), name
        assert dict(frame.schema) == schema(name)
        assert text.splitlines()[0] == ",".join(column.name for column in TABLES[name].columns)
        for row in rows:
            unset = {column.name for column in TABLES[name].columns if row[column.name] is None}
            assert unset <= {column.name for column in TABLES[name].columns if column.null}, (name, unset)
        key = TABLES[name].key
        assert len({tuple(row[k] for k in key) for row in rows}) == len(rows)


async def test_runs_count_by_the_benchmarks_policies(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    rows = {row["run_id"]: row for row in await table(tenant, evaluation_id, "runs")}
    said = [(rows[run]["counted"], rows[run]["exclusion"]) for run in made if run in rows]
    assert said == [
        (1.0, None), (0.75, None), (1.0, None), (0.0, None), (None, "partial_after_limit"), (0.25, None),
        (None, "invalidated"), (None, "infrastructure"), (None, "assisted"),
    ]  # fmt: skip
    first = rows[made[0]]
    assert (first["fraction"], first["working_s"], first["cost_usd"], first["events"]) == (1.0, 55.0, 0.25, 10)
    assert (json.loads(first["flags"]), first["started_at"]) == ([], "2026-11-02T09:00:00.123456Z")
    left = {row["run_id"]: row for row in await table(tenant, evaluation_id, "exclusions")}
    assert {run: row["exclusion"] for run, row in left.items()} == {
        run: row["exclusion"] for run, row in rows.items() if row["exclusion"]
    }
    gone = left[made[6]]
    assert (gone["reason"], gone["author"]) == ("broken fixture", "tok_lead")


async def test_controls_are_in_it_where_they_are_asked_for(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    path = f"/v1/evaluations/{evaluation_id}/tables/runs.json"
    assert made[9] not in {row["run_id"] for row in await tenant.get(path)}
    asked = {row["run_id"]: row for row in await tenant.get(f"{path}?controls=true")}
    assert (asked[made[9]]["counted"], asked[made[9]]["exclusion"]) == (None, "control")


async def test_agents_tasks_and_attempts_say_what_they_are(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    agents = await table(tenant, evaluation_id, "agents")
    assert {(a["model"], a["provider"], a["effort"], a["driver"]) for a in agents} == {
        ("acme/one", "acme", "high", "kit"), ("acme/one", "acme", None, "kit"),
    }  # fmt: skip
    tasks = {t["name"]: t for t in await table(tenant, evaluation_id, "tasks")}
    assert (tasks["t/1"]["item_key"], tasks["t/1"]["price_usd"], tasks["t/1"]["status"]) == ("item-1", 101.0, "ok")
    assert json.loads(tasks["t/1"]["facets"])["category"] == "law"
    attempts = {a["run_id"]: a for a in await table(tenant, evaluation_id, "attempts")}
    assert (attempts[made[0]]["host"], attempts[made[0]]["effort"]) == ("host-17", "high")


async def test_verdicts_and_criteria_hide_what_is_hidden(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    verdicts = [v for v in await table(tenant, evaluation_id, "verdicts") if v["run_id"] == made[0]]
    (judged,) = [v for v in verdicts if v["method"] == "llm_panel"]
    assert (judged["overridden"], judged["score"], judged["max_score"], judged["cost_usd"]) == (True, 0.0, 2.0, 0.125)
    assert json.loads(judged["detail"])["rubric"] == "the hidden rubric"
    (criterion, *_) = [c for c in await table(tenant, evaluation_id, "criteria") if not c["passed"]]
    assert json.loads(criterion["detail"])["cause"] == "wrong_answer"
    reader = await tenant.token("reports:read")
    for name, secret in (
        ("verdicts", "hidden rubric"),
        ("criteria", "hidden criterion"),
        ("votes", "quotes the brief"),
    ):
        assert secret in json.dumps(await table(tenant, evaluation_id, name)), name
        assert secret not in json.dumps(await table(tenant, evaluation_id, name, **reader)), name
    (vote,) = await table(tenant, evaluation_id, "votes", **reader)
    assert json.loads(vote["content"]) == {"pay_worthy": True, "failure_reason": None}
    assert (vote["input_tokens"], vote["run_id"]) == (5, made[0])


async def test_requests_tool_calls_ratings_and_preferences(tenant: Tenant) -> None:
    evaluation_id, made = await filled(tenant)
    requests = await table(tenant, evaluation_id, "model_requests")
    assert sorted((r["purpose"], r["run_id"], r["model"]) for r in requests) == sorted(
        [("agent", made[0], "acme/one"), ("agent", made[1], "acme/one"), ("judge", made[0], "acme/one")]
    )
    calls = await table(tenant, evaluation_id, "tool_calls")
    assert [(c["name"], c["result_seq"], c["is_error"], c["took_s"]) for c in calls] == [
        ("bash", 3, True, 2.0), ("=cmd()", 4, None, 2.0), ("lost", None, None, None),
    ]  # fmt: skip
    text = (await tenant.client.get(f"/v1/evaluations/{evaluation_id}/tables/tool_calls.csv")).text
    assert ",'=cmd()," in text
    (rating,) = await table(tenant, evaluation_id, "ratings")
    assert (rating["rating"], rating["accept"], rating["rater"], rating["by_model"]) == (2, True, "rater-1", False)
    assert "Barbara" not in json.dumps(rating)
    (preference,) = await table(tenant, evaluation_id, "preferences")
    assert (preference["source"], preference["value"], preference["second_run_id"]) == ("people", 0.5, None)


@pytest.mark.fault(57)
async def test_nobody_elses_evaluation_and_no_other_table(tenant: Tenant, other: Tenant) -> None:
    evaluation_id, _ = await filled(other)
    mine, _ = await filled(tenant)
    await tenant.get(f"/v1/evaluations/{evaluation_id}/tables", 404)
    await tenant.get(f"/v1/evaluations/{evaluation_id}/tables/runs.csv", 404)
    for wrong in ("runs", "runs.exe", "secrets.csv", "../runs.csv", ".csv"):
        await tenant.get(f"/v1/evaluations/{mine}/tables/{wrong}", 404)
    runs = {row["run_id"] for row in await table(tenant, mine, "runs")}
    assert not runs & {row["run_id"] for row in await table(other, evaluation_id, "runs")}
    writer = await tenant.token("runs:read")
    answer = await tenant.client.get(f"/v1/evaluations/{mine}/tables/runs.csv", headers=writer)
    assert answer.status_code == 403


async def test_a_scope_of_no_evaluation_is_its_projects_runs_only(tenant: Tenant, other: Tenant) -> None:
    await filled(other)
    _, made = await filled(tenant)
    async with tenant.state.db.snapshot() as tx:
        found = [row["run_id"] async for part in pieces(tx, "runs", Scope(tenant.project_id)) for row in part]
        where = RunFilter(outcome=("graded",), model=("acme/one",))
        graded = [r async for part in pieces(tx, "runs", Scope(tenant.project_id, where=where)) for r in part]
        (benchmark,) = {head.benchmark_id for head in await heads(tx, tenant.project_id, [graded[0]["evaluation_id"]])}
        of_set = [r async for p in pieces(tx, "tasks", Scope(tenant.project_id, benchmark_id=benchmark)) for r in p]
    assert found == [run for run in made if run != made[9]]
    assert len(graded) == 6
    assert {task["item_key"] for task in of_set} == {"item-0", "item-1", "item-2", "item-3"}

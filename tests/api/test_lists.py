"""Lists: filters, sorts, fields, totals, pages, and the ETag of the whole filter."""

from typing import Any

import pytest
from sqlalchemy import event

from service.domain.tasks import GraderSpec
from service.store import gradings, runs
from tests.api.helpers import Tenant, file_entry

PROBLEM = "urn:workstead:problem:"
PATHS = ("/v1/runs", "/v1/tasks", "/v1/agents", "/v1/scaffolds", "/v1/tokens", "/v1/gradings")


async def seeded(tenant: Tenant) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {"tasks": [], "agents": [], "runs": []}
    for i in range(3):
        facets, labels = {"kind": f"k{i}"}, {"week": str(i)}
        made["tasks"].append(await tenant.task(name=f"t/{i}", facets=facets, labels=labels))
        made["agents"].append(await tenant.agent(str(i), model=f"m{i}"))
        body = {"task": made["tasks"][i]["id"], "agent": made["agents"][i]["id"]}
        made["runs"].append(await tenant.post("/v1/runs", body))
    await tenant.post("/v1/tokens", {"scopes": ["runs:read"], "note": "one"})
    return made


async def graded(tenant: Tenant) -> Any:
    """Return a run that has one pending grading."""
    run = await tenant.run()
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"1")])
    async with tenant.state.db.transaction() as tx:
        spec = GraderSpec(method="exact", settings={})
        await gradings.enqueue(tx, await runs.load(tx, run["id"]), [spec])
    return run


async def listed(tenant: Tenant, path: str) -> list[str]:
    return [item["id"] for item in (await tenant.get(path))["data"]]


async def test_filters(tenant: Tenant) -> None:
    made = await seeded(tenant)
    tasks, agents, runs = ([x["id"] for x in made[name]] for name in ("tasks", "agents", "runs"))
    found = {
        "/v1/tasks?name=t/1": [tasks[1]],
        "/v1/tasks?name=t/1&name=t/2": [tasks[2], tasks[1]],
        f"/v1/tasks?digest={made['tasks'][0]['digest']}": [tasks[0]],
        "/v1/tasks?facet.kind=k2": [tasks[2]],
        "/v1/tasks?label.week=0": [tasks[0]],
        "/v1/tasks?benchmark_id=bench_none": [],
        f"/v1/tasks?ids={tasks[0]},{tasks[2]}&sort=created_at": [tasks[0], tasks[2]],
        "/v1/tasks?sort=-name": tasks[::-1],
        f"/v1/agents?label={made['agents'][1]['label'].replace(' ', '%20')}": [agents[1]],
        "/v1/agents?scaffold=solver@2": [agents[2]],
        "/v1/agents?model=m0&model=m1&sort=created_at": agents[:2],
        f"/v1/runs?agent_id={agents[0]}": [runs[0]],
        "/v1/runs?benchmark_id=bench_none": [],
        f"/v1/runs?created_after={made['runs'][2]['created_at']}&ids={runs[0]}": [],
        "/v1/tasks?created_before=2020-01-01T00:00:00Z": [],
    }
    for path, expected in found.items():
        assert await listed(tenant, path) == expected, path
    assert len(await listed(tenant, "/v1/scaffolds?name=solver&version=1&version=2")) == 2
    assert len(await listed(tenant, "/v1/tokens?note=one")) == 1


async def test_gradings_of_all_runs(tenant: Tenant) -> None:
    run = await graded(tenant)
    [one] = (await tenant.get(f"/v1/gradings?run_id={run['id']}&method=exact&state=pending&total=true"))["data"]
    whole = await tenant.get(f"/v1/gradings/{one['id']}")
    besides: dict[str, Any] = {
        "criteria": [],
        "criteria_total": 0,
        "votes_total": 0,
        "override": None,
        "contests": 0,
        "cost_usd": None,
    }
    assert {**one, **besides} == whole
    assert await listed(tenant, "/v1/gradings?state=graded") == []


@pytest.mark.parametrize("path", PATHS)
async def test_pages_fields_and_totals(tenant: Tenant, path: str) -> None:
    await seeded(tenant)
    everything = await tenant.get(f"{path}?total=true&sort=created_at")
    assert everything["total"] == len(everything["data"])
    assert "total" not in await tenant.get(path)
    seen: list[Any] = []
    link: str | None = f"{path}?limit=1&sort=created_at&fields=created_at"
    while link:
        answer = await tenant.client.get(link)
        seen += answer.json()["data"]
        link = answer.json()["next"]
        assert answer.headers.get("link") == (f'<{link}>; rel="next"' if link else None)
    assert [i["id"] for i in seen] == [i["id"] for i in everything["data"]]
    assert all(set(i) == {"id", "created_at"} for i in seen)
    for query, slug in (("sort=x", "unknown_sort"), ("fields=x", "unknown_field"), ("colour=red", "unknown_filter")):
        refused = await tenant.get(f"{path}?{query}", 422)
        assert refused["type"] == PROBLEM + slug
    ids = ",".join(f"x{i}" for i in range(201))
    assert (await tenant.get(f"{path}?ids={ids}", 422))["type"] == f"{PROBLEM}too_many_ids"
    assert (await tenant.client.get(f"{path}?limit=501")).status_code == 422


@pytest.mark.parametrize("path", PATHS)
async def test_an_unchanged_list_is_304_without_its_rows(tenant: Tenant, path: str) -> None:
    await seeded(tenant)
    first = await tenant.client.get(path)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    assert first.headers["cache-control"] == "private, max-age=2"
    if path == "/v1/tokens":  # its own use is a change of it, once a minute
        tag = (await tenant.client.get(path)).headers["etag"]
    statements: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    engine = tenant.state.db._engine.sync_engine  # pyright: ignore[reportPrivateUsage]
    event.listen(engine, "before_cursor_execute", note)
    same = await tenant.client.get(path, headers={"If-None-Match": tag})
    event.remove(engine, "before_cursor_execute", note)
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert len(statements) == 2  # the token, the fingerprint
    assert "bit_xor" in statements[1]
    assert "manifest" not in statements[1]


async def test_the_tag_is_of_the_filter_not_of_the_page(tenant: Tenant) -> None:
    made = await seeded(tenant)
    first, last = made["runs"][0]["id"], made["runs"][2]["id"]

    async def tag(query: str) -> str:
        return str((await tenant.client.get(f"/v1/runs?{query}")).headers["etag"])

    page, other = await tag("limit=1"), await tag(f"ids={last}")
    await tenant.post(f"/v1/runs/{first}/stop", {"mode": "discard"}, 200)
    assert await tag("limit=1") != page  # the page shows the last one only, but the first is in the filter
    assert await tag(f"ids={last}") == other
    queued = await tag("phase=queued")
    await tenant.post(f"/v1/runs/{last}/stop", {"mode": "discard"}, 200)
    assert await tag("phase=queued") != queued  # one left the filter
    for join in ("model=m1", "scaffold=solver@1", "facet.kind=k1", "flag=none"):
        assert await tag(join)


async def test_deleting_and_revoking_change_the_tag(tenant: Tenant) -> None:
    run = await tenant.run()
    made = await tenant.post("/v1/tokens", {"scopes": ["runs:read"]})
    await tenant.finish(run["id"])
    before = {p: (await tenant.client.get(p)).headers["etag"] for p in ("/v1/runs", "/v1/tokens")}
    await tenant.client.delete(f"/v1/runs/{run['id']}")
    await tenant.client.delete(f"/v1/tokens/{made['id']}")
    for path, tag in before.items():
        assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 200

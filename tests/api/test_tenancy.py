"""Nothing of another project can be reached, told apart from nothing, or seen in a list or stream."""

import asyncio
import json
import random
from contextlib import suppress
from typing import Any

import pytest

from service.api.app import describe
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, operations, runs
from tests.api.helpers import Tenant, file_entry
from tests.api.made import a_probe, a_publication
from tests.api.test_events import SSE, collect, frames, opened
from tests.api.test_model_requests import asked

LISTS = (
    *("/v1/runs?total=true", "/v1/tasks", "/v1/agents", "/v1/scaffolds", "/v1/tokens", "/v1/benchmarks"),
    *("/v1/grading-plans", "/v1/regrades", "/v1/reviews"),
    *("/v1/operations", "/v1/gradings", "/v1/changes", "/v1/models", "/v1/services", "/v1/breakers", "/v1/images"),
    *("/v1/campaigns", "/v1/changes?kinds=campaign"),
    *(
        "/v1/evaluations",
        "/v1/forecast-sets",
        "/v1/annotation-sets",
        "/v1/publications",
        "/v1/judge-probes",
        "/v1/run-notes",
    ),
)
INTEGRITY = {"method": "integrity"}
LABELS = {"name": "needs", "question": "Which?", "answer": {"kind": "boolean"}}
BODIES: dict[str, Any] = {
    "/v1/publications/{publication_id}/withdrawals": {"agent": "solver", "reason": "a wrong flag"},
    "/v1/runs/{run_id}/rerun": {"mode": "fresh"},
    "/v1/tasks/{task_id}/client-facts": {},
    "/v1/scaffolds/{scaffold_id}/conformance": {},
    "/v1/runs/{run_id}/stop": {"mode": "discard"},
    "/v1/forecast-sets/{set_id}/start": {},
    "/v1/forecast-sets/{set_id}/forecasts": {"forecasts": [{"task": "x", "forecaster": "f", "p_hat": 0.5}]},
    "/v1/annotation-sets/{annotation_set_id}/start": {},
    "/v1/annotation-sets/{annotation_set_id}/annotations": {"annotations": [{"target": "x", "value": "a"}]},
    "/v1/benchmarks/{benchmark_id}/embeddings": {"model": "m"},
    "/v1/benchmarks/{benchmark_id}/derive": {"name": "part", "version": "1"},
    "/v1/runs/{run_id}/notes": {"body": "x"},
    "/v1/evaluations/{evaluation_id}/start": {},
    "/v1/evaluations/{evaluation_id}/stop": {},
    "/v1/evaluations/{evaluation_id}/report": {},
    "/v1/evaluations/{evaluation_id}/agents": [{"agent": "any"}],
    "/v1/evaluations/{evaluation_id}/retry": {"outcomes": ["ungraded"]},
    "/v1/evaluations/{evaluation_id}/hold": {},
    "/v1/evaluations/{evaluation_id}/release": {},
    "/v1/runs/{run_id}/claim": {"holder": "x"},
    "/v1/runs/{run_id}/desktop/ticket": {},
    "/v1/runs/{run_id}/film": {},
    "/v1/runs/{run_id}/exec": {"argv": ["true"]},
    "/v1/runs/{run_id}/desktop/actions": {"actions": [{"type": "screenshot"}]},
    "/v1/runs/{run_id}/usage": {},
    "/v1/campaigns/{campaign_id}/raters": {"raters": [{"name": "Ann"}]},
    "/v1/rate/{assignment_id}/beat": {"active_s": 1},
    "/v1/rate/{assignment_id}/submit": {"client_id": "1", "rating": {"rating": 1}},
    "/v1/rate/{assignment_id}/skip": {"reason": "x"},
    "/v1/runs/{run_id}/messages": {"text": "Which year?"},
    "/v1/runs/{run_id}/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "/v1/runs/{run_id}/finish": {},
    "/v1/runs/{run_id}/gradings": {},
    "/v1/runs/{run_id}/gradings/jobbench": {"result": {}},
    "/v1/gradings/{grading_id}/contest": {"reason": "why"},
    "/v1/gradings/{grading_id}/override": {"reason": "why", "score": 1},
    "/v1/regrades/{regrade_id}/start": {"scope": "all"},
    "/v1/runs/{run_id}/confirmations/{confirmation_id}": {"decision": "deny"},
    "/v1/benchmarks/{benchmark_id}/checks": {"items": {"a": {"state": "ok"}}},
}


async def everything(one: Tenant) -> dict[str, str]:
    """Make one of each kind of thing; return the values of all path parameters."""
    digest = await one.blob(b"content of " + one.project_id.encode())
    task = await one.task(name="t/all")
    run = await one.run()
    attempt = await one.start(run["id"])
    await asked(one, attempt)
    await one.seal(attempt, [file_entry("output/a.txt", b"mine", "text/plain")])
    await one.finish(run["id"])
    token = await one.post("/v1/tokens", {"scopes": ["runs:read"]})
    return {
        "sha256": digest,
        "task_id": task["id"],
        "scaffold_id": (await one.get("/v1/scaffolds"))["data"][0]["id"],
        "agent_id": run["agent"]["id"],
        "run_id": run["id"],
        "n": "1",
        "stream": "stdout",
        "side": "request",
        "path": "output/a.txt",
        "file": "runs.csv",
        **await _gradings(one, run["id"]),
        "confirmation_id": "cnf_none",
        "benchmark_id": (await _benchmark(one))["id"],
        "operation_id": await _operation(one),
        "token_id": token["id"],
        "host_id": "host-1",
        "probe_id": await a_probe(one),
        "set_id": (await one.post("/v1/forecast-sets", {"name": "mine", "task_ids": [task["id"]]}))["id"],
        "annotation_set_id": (await one.post("/v1/annotation-sets", LABELS | {"task_ids": [task["id"]]}))["id"],
        "publication_id": await a_publication(one),
        **await _webhook(one),
        **await _models(one),
        **await _campaign(one),
        "image_id": (await one.post("/v1/images", {"name": "mine", "archive": digest}))["id"],
        "project_id": one.project_id,
        "evaluation_id": (await _evaluation(one, task["id"], run["agent"]["id"]))["id"],
        "note_id": (await one.post(f"/v1/runs/{run['id']}/notes", {"body": "mine"}))["id"],
    }


async def _gradings(one: Tenant, run_id: str) -> dict[str, str]:
    async with one.state.db.transaction() as tx:
        (row,) = await gradings.enqueue(tx, await runs.load(tx, run_id), [GraderSpec(method="exact")])
        await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, 1.0, 1.0))
    plan = await one.post("/v1/grading-plans", {"name": f"plan-{one.project_id}", "spec": {"graders": [INTEGRITY]}})
    regrade = await one.post("/v1/regrades", {"plan": plan["plan"], "runs": [run_id]})
    review = await one.post(f"/v1/gradings/{row.id}/contest", {"reason": "is it?"})
    return {"grading_id": row.id, "plan": plan["name"], "regrade_id": regrade["id"], "review_id": review["id"]}


async def _benchmark(one: Tenant, version: str = "1") -> Any:
    items = [{"key": "a", "task": {"name": "t/a", "instruction": "work"}}]
    source = {"importer": "made_up", "importer_version": "1"}
    return await one.post(
        "/v1/benchmarks", {"manifest": {"name": "set", "version": version, "source": source, "items": items}}
    )


async def _campaign(one: Tenant) -> dict[str, str]:
    spec = {"name": "panel", "form": "human_panel", "instruction": "Rate."}
    campaign = await one.post("/v1/campaigns", spec)
    path = f"/v1/campaigns/{campaign['id']}"
    await one.post(f"{path}/open", None, 200)
    me = await one.get("/v1/me")
    rater = (await one.post(f"{path}/raters", {"raters": [{"name": "bot", "token_id": me["token_id"]}]}))["data"][0]
    taken = await one.post(f"/v1/rate/next?campaign_id={campaign['id']}", None, 200)
    return {"campaign_id": campaign["id"], "rater_id": rater["id"], "assignment_id": taken["id"]}


async def _evaluation(one: Tenant, task_id: str, agent_id: str) -> Any:
    return await one.post("/v1/evaluations", {"name": "mine", "task_ids": [task_id], "agents": [{"agent": agent_id}]})


async def _operation(one: Tenant) -> str:
    async with one.state.db.transaction() as tx:
        return (await operations.create(tx, one.project_id, "benchmark_import", {"manifest_sha256": "0" * 64})).id


async def _webhook(one: Tenant) -> dict[str, str]:
    webhook = await one.post("/v1/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]})
    delivery = await one.post(f"/v1/webhooks/{webhook['id']}/test", None, 202)
    return {"webhook_id": webhook["id"], "delivery_id": delivery["id"]}


async def _models(one: Tenant) -> dict[str, str]:
    spec = {"name": "acme/one", "provider": "acme", "upstream_id": "one", "dialect": "openai"}
    model = await one.post("/v1/models", {**spec, "base_url": "https://api.acme.example.com/v1"})
    service = await one.post("/v1/services", {"name": "search", "base_url": "https://search.example.com"})
    await one.client.put(f"/v1/breakers/{model['id']}", json={"state": "open"})
    return {"model_id": model["id"], "service_id": service["id"]}


def _targets() -> list[tuple[str, str]]:
    """Method and template of every route with an id in it, from the API's own description."""
    paths: dict[str, dict[str, Any]] = describe().openapi()["paths"]
    return [(m.upper(), path) for path, item in paths.items() for m in item if "{" in path and m != "head"]


@pytest.mark.fault(57)
async def test_every_foreign_id_is_the_same_404_as_an_unknown_one(tenant: Tenant, other: Tenant) -> None:
    theirs = await everything(other)
    unknown = {k: v if k in ("n", "stream", "path", "side") else _unlike(v) for k, v in theirs.items()}
    targets = [t for t in _targets() if t[0] not in ("PUT", "PATCH")]
    assert len(targets) >= 18
    for method, template in targets:
        answers: list[Any] = []
        for ids in (theirs, unknown):
            path = template.format(**ids)
            answer = await tenant.client.request(method, path, json=BODIES.get(template))
            body: dict[str, Any] = answer.json() if answer.content else {}
            body.pop("request_id", None)
            answers.append((answer.status_code, body))
        assert answers[0] == answers[1], (method, template)
        assert answers[0][0] == 404, (method, template, answers[0])
        assert answers[0][1]["type"] == "urn:workstead:problem:not_found", template
    still = await other.get(f"/v1/runs/{theirs['run_id']}")
    assert still["phase"] == "done"
    assert (await other.get("/v1/me"))["project_id"] == other.project_id


def _unlike(value: str) -> str:
    return value[:-6] + "".join("1" if c != "1" else "2" for c in value[-6:])


@pytest.mark.fault(58)
async def test_lists_and_streams_hold_no_foreign_rows(tenant: Tenant, other: Tenant, url: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    made: dict[str, set[str]] = {tenant.project_id: set(), other.project_id: set()}
    for step in range(24):
        one = chance.choice([tenant, other])
        made[one.project_id] |= await _one_of(one, chance, step)
    for one, foreign in ((tenant, other), (other, tenant)):
        for path in LISTS:
            text = (await one.client.get(f"{path}{'&' if '?' in path else '?'}limit=500")).text
            assert not [i for i in made[foreign.project_id] if i in text], path
        runs = (await one.get("/v1/runs?limit=500"))["data"]
        assert {r["id"] for r in runs} == {i for i in made[one.project_id] if i.startswith("run_")}
        ids = ",".join(sorted(i for i in made[foreign.project_id] if i.startswith("run_"))[:200])
        if ids:
            assert (await one.get(f"/v1/runs?ids={ids}"))["data"] == []
        told = await _told(url, one, {r["id"] for r in runs})
        assert {i for i in told if i.startswith("run_")} == {r["id"] for r in runs}
        assert not told & made[foreign.project_id]
        for run in runs[:2]:
            await one.finish(run["id"])
            streamed = await collect(url, one, run["id"])
            assert all(run["id"] in f["data"] for f in streamed if "data" in f)
            answer = await foreign.client.get(f"/v1/runs/{run['id']}/events", headers=SSE)
            assert answer.status_code == 404


async def _told(url: str, one: Tenant, wanted: set[str]) -> set[str]:
    """Ids that the stream of changes tells until all of ``wanted`` were there, and a little longer."""
    told: set[str] = set()
    with suppress(TimeoutError):
        async with asyncio.timeout(20) as patience, opened(f"{url}/v1/changes", one.bearer) as response:
            async for frame in frames(response):
                if "data" in frame:
                    told.add(json.loads(frame["data"])["id"])
                if wanted <= told:
                    patience.reschedule(asyncio.get_running_loop().time() + 0.3)
                    wanted = {"nothing more"}
    return told


async def _one_of(one: Tenant, chance: random.Random, step: int) -> set[str]:
    """Make something; return the ids of what lists may show of it to its own project only."""
    match chance.choice(["run", "task", "agent", "benchmark", "operation", "say", "evaluation", "forecasts", "shown"]):
        case "run":
            return {(await one.run(labels={"step": str(step)}))["id"]}
        case "task":
            return {(await one.task(name=f"t/{step}"))["id"]}
        case "agent":
            return {(await one.agent(str(step)))["id"]}
        case "benchmark":
            return {(await _benchmark(one, str(step)))["id"]}
        case "operation":
            return {await _operation(one)}
        case "evaluation":
            task, agent = await one.task(name=f"t/{step}"), await one.agent(str(step))
            return {(await _evaluation(one, task["id"], agent["id"]))["id"]}
        case "forecasts":
            task = await one.task(name=f"t/{step}")
            return {(await one.post("/v1/forecast-sets", {"name": f"f{step}", "task_ids": [task["id"]]}))["id"]}
        case "shown":
            return {await a_probe(one), await a_publication(one, f"week-{step}")}
        case _:
            await _work(one, chance)
            return set()


async def _work(one: Tenant, chance: random.Random) -> None:
    queued = (await one.get("/v1/runs?phase=queued"))["data"]
    if queued:
        attempt = await one.start(chance.choice(queued)["id"])
        await asyncio.gather(*(one.say(attempt, f"{i} of {one.project_id}", first=i) for i in range(3)))

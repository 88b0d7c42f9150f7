"""Runs: lists and filters, revisions, stops, deletion; nothing of another project; no host clock."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.run_states import EndedBecause, Outcome, Phase, StopMode
from service.domain.tasks import TaskManifest
from service.store import agents, attempts, audit, hosts, idempotency, projects, runs, scaffolds, tasks
from service.store.database import Database, Tx
from service.store.listing import ListFilter
from service.store.rows import Page, RunFilter
from tests.integration.store.seeds import Seeds, add_host, add_run, seed


async def test_pages_are_stable_and_complete(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        await add_run(tx, other)
        made = [await add_run(tx, seeds) for _ in range(23)]
        for i, run in enumerate(made[:5]):
            await runs.update(tx, run.id, score=float(i), max_score=5.0)
    for sort in ("created_at", "-created_at", "updated_at", "-updated_at", "score", "-score"):
        seen: list[str] = []
        cursor = None
        async with db.reading() as tx:
            while True:
                part = await runs.list(tx, seeds.project.id, RunFilter(), sort, cursor, 7)
                seen += [r.id for r in part.items]
                cursor = part.next
                if cursor is None:
                    break
        assert sorted(seen) == sorted(r.id for r in made), sort
    async with db.reading() as tx:
        best = await runs.list(tx, seeds.project.id, RunFilter(), "-score", None, 5)
        assert [r.score for r in best.items] == [4, 3, 2, 1, 0]
        odd_ones: list[dict[str, Any]] = [{"sort": "x; drop"}, {"cursor": ("once", "x")}, {"limit": 0}, {"limit": 501}]
        for odd in odd_ones:
            with pytest.raises(Invalid):
                await runs.list(tx, seeds.project.id, RunFilter(), **odd)


async def test_filters(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        manifest = TaskManifest(name="t/two", instruction="x", facets={"job": "editor", "skills": ["a", "b"], "n": 3})
        task, _ = await tasks.create(tx, seeds.project.id, manifest)
        agent, _ = await agents.create(tx, seeds.project.id, AgentSpec(scaffold="cmd@1", model="m-1", label="other"))
        plain = await add_run(tx, seeds, labels={"week": "48"})
        rich = await add_run(tx, seeds, task_id=task.id, agent_id=agent.id)
        await runs.add_flags(tx, rich.id, ["retried", "retried"])
        await runs.set_phase(tx, rich.id, Phase.DONE, outcome=Outcome.UNGRADED, ended_because=EndedBecause.INFRA_ERROR)
    old = datetime.now(UTC) - timedelta(days=1)
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {plain.id, rich.id}),
        ({"ids": (plain.id, "run_x")}, {plain.id}),
        ({"agent_id": (agent.id,)}, {rich.id}),
        ({"task_id": (task.id,), "phase": ("queued",)}, set()),
        ({"phase": ("queued", "held")}, {plain.id}),
        ({"outcome": ("ungraded",)}, {rich.id}),
        ({"ended_because": ("infra_error",)}, {rich.id}),
        ({"flag": ("retried", "assisted")}, {rich.id}),
        ({"labels": {"week": "48"}}, {plain.id}),
        ({"model": ("m-1",)}, {rich.id}),
        ({"scaffold": ("cmd@1",)}, {plain.id, rich.id}),
        ({"facets": {"job": "editor", "skills": "b"}}, {rich.id}),
        ({"facets": {"n": "3"}}, {rich.id}),
        ({"facets": {"job": "a"}}, set()),
        ({"created_before": old}, set()),
        ({"created_after": old, "updated_after": old}, {plain.id, rich.id}),
    ]
    async with db.reading() as tx:
        for fields, expected in cases:
            found = await runs.list(tx, seeds.project.id, RunFilter(**fields))
            assert {r.id for r in found.items} == expected, fields
            assert await runs.count(tx, seeds.project.id, RunFilter(**fields)) == len(expected)
        counts = await runs.counts_by_phase(tx, seeds.project.id)
    assert sum(counts.values()) == 2
    assert counts[Phase.QUEUED] == counts[Phase.DONE] == 1


@pytest.mark.fault(57)
async def test_nothing_of_another_project(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        other = await seed(tx, "beta")
        run = await add_run(tx, other)
    mine = seeds.project.id
    async with db.reading() as tx:
        assert await runs.get(tx, mine, run.id) is None
        assert await tasks.get(tx, mine, other.task.id) is None
        assert await agents.get(tx, mine, other.agent.id) is None
        assert await scaffolds.get(tx, mine, other.agent.scaffold_id) is None
        assert (await runs.list(tx, mine, RunFilter(ids=(run.id,)))).items == []
        assert [
            t.project_id for t in (await tasks.LISTING.page(tx, mine, ListFilter(), "-created_at", Page())).items
        ] == [mine]
        assert [
            a.project_id for a in (await agents.LISTING.page(tx, mine, ListFilter(), "-created_at", Page())).items
        ] == [mine]
        assert [
            s.project_id for s in (await scaffolds.LISTING.page(tx, mine, ListFilter(), "-created_at", Page())).items
        ] == [mine]


async def test_every_change_raises_the_revision(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
    revision, updated = run.revision, run.updated_at
    steps: list[Callable[[Tx], Awaitable[Any]]] = [
        lambda tx: runs.update(tx, run.id, memory_peak_bytes=1),
        lambda tx: runs.add_flags(tx, run.id, ["assisted"]),
        lambda tx: runs.set_phase(tx, run.id, Phase.HELD, hold={"why": "disk"}),
        lambda tx: runs.set_phase(tx, run.id, Phase.QUEUED),
        lambda tx: runs.request_stop(tx, run.id, StopMode.FINISH),
    ]
    for step in steps:
        async with db.transaction() as tx:
            await step(tx)
            now = await runs.load(tx, run.id)
        assert now.revision > revision
        assert now.updated_at > updated
        revision, updated = now.revision, now.updated_at
    async with db.transaction() as tx:
        assert not await runs.set_phase(tx, run.id, Phase.RUNNING)
        await runs.add_flags(tx, run.id, ["assisted"])
        assert (await runs.load(tx, run.id)).revision == revision


async def test_stops_only_get_harsher(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    async with db.transaction() as tx:
        await attempts.claim(tx, host, 1)
        modes = [
            (await runs.request_stop(tx, run.id, m)).stop_mode
            for m in (StopMode.COLLECT, StopMode.FINISH, StopMode.DISCARD, StopMode.COLLECT)
        ]
    assert modes == [StopMode.COLLECT, StopMode.COLLECT, StopMode.DISCARD, StopMode.DISCARD]


async def test_delete(db: Database, seeds: Seeds) -> None:
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        with pytest.raises(Conflict):
            await runs.delete(tx, run.id)
        await runs.request_stop(tx, run.id, StopMode.DISCARD)
        await runs.delete(tx, run.id)
        with pytest.raises(NotFound):
            await runs.load(tx, run.id)


async def test_catalogue(db: Database, seeds: Seeds) -> None:
    project = seeds.project.id
    async with db.transaction() as tx:
        same, created = await scaffolds.register(tx, project, ScaffoldManifest(name="cmd", version="1", argv=["true"]))
        assert (same.id, created) == (seeds.agent.scaffold_id, False)
        with pytest.raises(Conflict, match="other content"):
            await scaffolds.register(tx, project, ScaffoldManifest(name="cmd", version="1", argv=["false"]))
        agent, created = await agents.create(tx, project, AgentSpec(scaffold="cmd@1", label="later label"))
        assert (agent, created) == (seeds.agent, False)
        with pytest.raises(Conflict, match="label"):
            await agents.create(tx, project, AgentSpec(scaffold="cmd@1", model="m", label=seeds.agent.label))
        with pytest.raises(NotFound):
            await agents.create(tx, project, AgentSpec(scaffold="cmd@2"))
        long = {"k": "v" * 100}
        made = [
            await agents.create(tx, project, AgentSpec(scaffold="cmd@1", settings={**long, "z": i})) for i in (1, 2)
        ]
        labels = {a.label for a, _ in made}
        assert len(labels) == 2
        assert max(map(len, labels)) <= 80
        for bad in ("a\0b", "\0"):
            with pytest.raises(Invalid, match="text"):
                await tasks.create(tx, project, TaskManifest(name="t", instruction=bad))
        assert (await projects.get_default(tx)) == (await projects.get_default(tx))
        with pytest.raises(Conflict):
            await projects.create(tx, "alpha")
        await audit.record(tx, project, "tok_1", "delete", "run_\0", {"x": "\0"})


async def test_idempotency_keys(db: Database, seeds: Seeds) -> None:
    key = (seeds.project.id, "POST /v1/runs", "k1")
    async with db.transaction() as tx:
        assert await idempotency.begin(tx, *key, "h") is None
        assert await idempotency.begin(tx, *key, "h") == idempotency.InProgress()
        await idempotency.abandon(tx, *key)
        assert await idempotency.begin(tx, *key, "h") is None
        await idempotency.finish(tx, *key, 201, {"id": "run_1"})
        assert await idempotency.begin(tx, *key, "h") == idempotency.Stored(201, {"id": "run_1"})
        with pytest.raises(Invalid, match="another body"):
            await idempotency.begin(tx, *key, "other")
        await idempotency.abandon(tx, *key)
        assert isinstance(await idempotency.begin(tx, *key, "h"), idempotency.Stored)
        assert await idempotency.purge(tx) == 0


@pytest.mark.fault(119)
@pytest.mark.parametrize("jump", [3600, -3600, 86_400 * 200])
async def test_a_jump_of_the_hosts_clock_moves_no_lease(
    db: Database, seeds: Seeds, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    real, real_ns = time.time, time.time_ns
    async with db.transaction() as tx:
        run = await add_run(tx, seeds)
        host = await add_host(tx)
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jump * 1_000_000_000)
    async with db.transaction() as tx:
        assert await hosts.stale(tx, 30) == []
        assert await hosts.beat(tx, host.id, host.epoch)
        (attempt,) = await attempts.claim(tx, replace(host, slots=1), 1)
        second = await add_run(tx, seeds)
        after = await runs.load(tx, run.id)
        assert await hosts.stale(tx, 30) == []
    assert after.queue_s is not None
    assert 0 <= after.queue_s < 30
    assert abs((attempt.created_at - run.created_at).total_seconds()) < 30
    assert second.created_at > run.created_at

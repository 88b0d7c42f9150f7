"""An evaluation with results of every kind, written as the service's own processes would leave it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from service.domain.ids import new_id
from service.store.database import Tx
from service.store.tables import attempts, grading_criteria, gradings, run_events, runs
from service.store.tables_campaigns import campaign_items, campaigns, preferences, raters, rating_assignments
from service.store.tables_evaluations import evaluation_agents, evaluation_tasks, evaluations, run_invalidations
from service.store.tables_grading import verdict_reviews, votes
from service.store.tables_models import model_requests, models
from tests.api.helpers import Tenant

BEGAN = datetime(2026, 11, 2, 9, 0, 0, 123456, UTC)
SOURCE = {"importer": "freelance", "importer_version": "1"}
POLICIES = {"no_deliverable": "zero", "partial_after_limit": "exclude"}


async def benchmark(one: Tenant, tasks: int = 4, **more: Any) -> Any:
    """A benchmark of so many tasks with prices, two categories, and one private task at the end."""
    items = [
        {
            "key": f"item-{n}",
            "task": {
                "name": f"t/{n}",
                "instruction": f"work {n}",
                "facets": {"category": ["art", "law"][n % 2], "split": "private" if n == tasks - 1 else "public"},
                "price": {"amount": "100", "currency": "USD", "usd": str(100 + n), "basis": "posted"},
            },
        }
        for n in range(tasks)
    ]
    manifest = {"name": "set", "version": "1", "source": SOURCE, "policies": POLICIES, "items": items}
    manifest |= {"groupings": [{"name": "category", "facet": "category"}], "notice": "Not for deployment claims."}
    return await one.post("/v1/benchmarks", {"manifest": {**manifest, **more}})


async def evaluation(one: Tenant, name: str = "week", **more: Any) -> tuple[str, list[str], list[str]]:
    """A running evaluation without runs; return its id, those of its agents and of its tasks."""
    made = await benchmark(one, **more)
    items = (await one.get(f"/v1/benchmarks/{made['id']}/items?limit=500"))["data"]
    tasks = [item["task"]["id"] if isinstance(item.get("task"), dict) else item["task_id"] for item in items]
    first = await one.agent("1", model="acme/one", settings={"effort": "high"})
    second = await one.agent("2", model="acme/one")
    evaluation_id = new_id("eval")
    async with one.state.db.transaction() as tx:
        await tx.execute(
            evaluations.insert().values(
                id=evaluation_id, project_id=one.project_id, name=name, state="running", spec={"name": name},
                resolved={"benchmark": made["id"]}, benchmark_id=made["id"], plan="task@1", seed=7, author="tok_x",
            )
        )  # fmt: skip
        for position, agent in enumerate((first["id"], second["id"])):
            row = {"evaluation_id": evaluation_id, "agent_id": agent, "position": position, "samples": 2}
            await tx.execute(evaluation_agents.insert().values(row))
        for position, task in enumerate(tasks):
            row = {
                "evaluation_id": evaluation_id,
                "task_id": task,
                "position": position,
                "item_key": f"item-{position}",
            }
            await tx.execute(evaluation_tasks.insert().values(row))
    return evaluation_id, [first["id"], second["id"]], tasks


async def add_run(tx: Tx, one: Tenant, evaluation_id: str, agent: str, task: str, n: int, **more: Any) -> str:
    """A done run that is graded 3 of 4 unless ``more`` says otherwise."""
    values: dict[str, Any] = {
        "id": f"run_{n:026d}" if n >= 0 else new_id("run"),
        "project_id": one.project_id, "evaluation_id": evaluation_id, "agent_id": agent, "task_id": task,
        "phase": "done", "outcome": "graded", "ended_because": "completed", "limits": {}, "environment": "base",
        "sample": 1, "attempt": 1, "verdict_state": "graded", "score": 3.0, "max_score": 4.0,
        "wall_s": 60.0 + n, "provider_wait_s": 5.0, "turns": 3 + n, "tool_calls": 2, "event_count": 10 + n,
        "requests": 2, "input_tokens": 100, "output_tokens": 10, "cost_usd": Decimal("0.25") * (n + 1),
        "cost_basis": "measured", "cost_usd_all_attempts": Decimal("0.5"), "deliverable_files": 1,
        "started_at": BEGAN, "ended_at": BEGAN + timedelta(minutes=n), "graded_at": BEGAN + timedelta(hours=1),
        "queue_s": 1.5, "provision_s": 0.5, "deliverable_digest": "ab" * 32,
    }  # fmt: skip
    values |= more
    run_id = f"run_{one.project_id[-10:]}{values['id'][-16:]}"
    await tx.execute(runs.insert().values({**values, "id": run_id}))
    template = {"template": "cd" * 32, "prompt": "ef" * 32, "effort": "high"}
    made = {"run_id": run_id, "n": 1, "state": "released", "fence": 1, "host_id": "host-17", "provenance": template}
    await tx.execute(attempts.insert().values({**made, "ended_because": values["ended_because"]}))
    return run_id


async def add_grading(
    tx: Tx, one: Tenant, run_id: str, passed: list[bool], method: str = "test_cases", **more: Any
) -> str:
    """A primary verdict with one criterion for each entry, each with the cause of its failure."""
    grading_id = new_id("grd")
    values: dict[str, Any] = {
        "id": grading_id, "project_id": one.project_id, "run_id": run_id, "deliverable_digest": "ab" * 32,
        "method": method, "method_version": "1", "settings": {}, "settings_digest": "cd" * 32, "plan": "task@1",
        "primary": True, "state": "graded", "score": float(sum(passed)), "max_score": float(len(passed)),
        "detail": {"solved": all(passed), "rubric": "the hidden rubric"}, "graded_at": BEGAN,
    }  # fmt: skip
    await tx.execute(gradings.insert().values({**values, **more}))
    for position, yes in enumerate(passed):
        row: dict[str, Any] = {
            "grading_id": grading_id, "position": position, "criterion": f"test {position}", "passed": yes,
            "score": float(yes), "max_score": 1.0, "cause": None if yes else "wrong_answer",
            "detail": {"kind": "code", "criterion": "the hidden criterion"},
        }  # fmt: skip
        await tx.execute(grading_criteria.insert().values(row))
    return grading_id


async def filled(one: Tenant, **more: Any) -> tuple[str, list[str]]:
    """An evaluation whose runs ended in every way; return its id and the runs'."""
    evaluation_id, (first, second), tasks = await evaluation(one, **more)
    ends: list[tuple[str, int, Mapping[str, Any], list[bool]]] = [
        (first, 0, {"score": 4.0}, [True] * 4),
        (first, 0, {"sample": 2}, [True, True, True, False]),
        (first, 1, {"score": 4.0}, [True] * 4),
        (first, 2, {"flags": ["no_deliverable"], "score": None, "max_score": None, "outcome": "ungraded"}, []),
        (first, 3, {"ended_because": "wall_clock", "flags": ["partial_output"]}, [True, True, True, False]),
        (second, 0, {"score": 1.0}, [True, False, False, False]),
        (second, 1, {"outcome": "invalidated"}, [True, True, True, False]),
        (second, 2, {"ended_because": "provider_unavailable", "outcome": "ungraded", "score": None, "max_score": None}, []),
        (second, 3, {"flags": ["assisted"], "labels": {"who": "Ann Lee"}}, [True, True, True, False]),
        (second, 0, {"flags": ["control"], "sample": 2}, [True, True, True, False]),
    ]  # fmt: skip
    made: list[str] = []
    async with one.state.db.transaction() as tx:
        for n, (agent, task, changes, passed) in enumerate(ends):
            run_id = await add_run(tx, one, evaluation_id, agent, tasks[task], n, **changes)
            made.append(run_id)
            if passed:
                await add_grading(tx, one, run_id, passed)
        await _further(tx, one, made, tasks)
    return evaluation_id, made


async def _further(tx: Tx, one: Tenant, made: list[str], tasks: list[str]) -> None:
    """An override, an invalidation, votes, requests, tool calls, a campaign with a rating and a preference."""
    judged = await add_grading(tx, one, made[0], [True, False], "llm_panel", primary=False)
    override = {
        "id": new_id("rvw"),
        "project_id": one.project_id,
        "run_id": made[0],
        "grading_id": judged,
        "kind": "override",
    }
    await tx.execute(
        verdict_reviews.insert().values({**override, "author": "tok_x", "reason": "no", "score": 0.0, "max_score": 2.0})
    )
    gone = {
        "id": new_id("inv"),
        "project_id": one.project_id,
        "run_id": made[6],
        "author": "tok_lead",
        "reason": "broken fixture",
    }
    await tx.execute(run_invalidations.insert().values(gone))
    content = {"pay_worthy": True, "failure_reason": None, "reasoning": "quotes the brief"}
    vote = {
        "grading_id": judged,
        "judge": "acme/one#1",
        "item": "",
        "n": 1,
        "project_id": one.project_id,
        "state": "valid",
    }
    await tx.execute(
        votes.insert().values({**vote, "content": content, "usage": {"input_tokens": 5, "output_tokens": 2}})
    )
    for n, (run_id, subject) in enumerate([(made[0], None), (made[1], None), (None, judged)]):
        asked = {
            "id": new_id("mrq"), "project_id": one.project_id, "run_id": run_id, "subject": subject, "n": n,
            "attempt": 1, "purpose": "judge" if subject else "agent", "state": "finished", "model_id": await _model(tx, one),
            "provider": "acme", "requested_model": "one", "reported_model": f"one-{n % 2}", "cost_usd": Decimal("0.125"),
        }  # fmt: skip
        await tx.execute(model_requests.insert().values(asked))
    await _calls(tx, made[0])
    await _campaign(tx, one, made, tasks)


async def _calls(tx: Tx, run_id: str) -> None:
    """Tool calls with and without a result, and results that say anything."""
    said: list[tuple[str, dict[str, Any]]] = [
        ("tool.call", {"id": "c1", "name": "bash", "arguments": {}}),
        ("tool.call", {"id": "c2", "name": "=cmd()"}),
        ("tool.result", {"id": "c1", "is_error": True}),
        ("tool.result", {"id": "c2", "is_error": "who knows"}),
        ("tool.call", {"name": "lost"}),
    ]
    for seq, (kind, payload) in enumerate(said, 1):
        event: dict[str, Any] = {
            "run_id": run_id,
            "seq": seq,
            "attempt": 1,
            "source": "x",
            "source_offset": seq,
            "type": kind,
            "payload": payload,
        }
        await tx.execute(run_events.insert().values({**event, "ts": BEGAN + timedelta(seconds=seq)}))


async def _model(tx: Tx, one: Tenant) -> str:
    mine = (models.c.project_id == one.project_id, models.c.name == "acme/one")
    return str((await tx.execute(models.select().where(*mine))).mappings().one()["id"])


async def _campaign(tx: Tx, one: Tenant, made: list[str], tasks: list[str]) -> None:
    ids = {name: new_id(name) for name in ("cmp", "itm", "rtr", "asg", "prf")}
    head: dict[str, Any] = {
        "id": ids["cmp"],
        "project_id": one.project_id,
        "name": "panel",
        "form": "human_panel",
        "spec": {},
    }
    about = {"instruction": "Rate.", "instruction_sha256": "ab" * 32, "items": 1, "author": "tok_x"}
    await tx.execute(campaigns.insert().values({**head, **about}))
    mine = {"project_id": one.project_id, "campaign_id": ids["cmp"]}
    item: dict[str, Any] = {"id": ids["itm"], "position": 0, "task_id": tasks[0], "run_id": made[0], "categories": []}
    await tx.execute(campaign_items.insert().values({**mine, **item}))
    rater: dict[str, Any] = {"id": ids["rtr"], "name": "Barbara Brown", "pseudonym": "rater-1", "categories": []}
    await tx.execute(raters.insert().values({**mine, **rater}))
    said = {"rating": 2, "failed_early": False, "reason": "fine work", "tags": ["incomplete"], "notes": ""}
    rating = {
        "id": ids["asg"],
        "item_id": ids["itm"],
        "rater_id": ids["rtr"],
        "purpose": "rating",
        "state": "submitted",
    }
    await tx.execute(rating_assignments.insert().values({**mine, **rating, "rating": said, "submitted_at": BEGAN}))
    preference = {
        "id": ids["prf"], "item_id": ids["itm"], "task_id": tasks[0], "first_run_id": made[0], "first_agent_id": "agt_x",
        "value": 0.5, "choices": json.loads('["same"]'), "combination": "completion_then_quality",
    }  # fmt: skip
    await tx.execute(preferences.insert().values({**mine, **preference}))

"""Campaigns for tests: deliverables without sandboxes, and raters as browsers have them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from tests.api.apps import app_of
from tests.api.helpers import BASE, Tenant, file_entry

BRIEF = "Write a report on the harbour."
RULES = "Read the brief first. Accept what a reasonable client would pay for."
PANEL = {"name": "panel", "form": "human_panel", "instruction": RULES, "second_pass": False}


async def commissioned(one: Tenant, name: str = "t/harbour", **facets: Any) -> str:
    """Return a task that has a human reference, a note for raters and an input."""
    parts = {"reference/final report.md": b"the reference", "evaluator_note.md": b"mind the tides", "in.csv": b"a,b\n"}
    files = {path: (await one.blob(data), len(data)) for path, data in parts.items()}
    refs = [{"path": path, "sha256": sha, "size_bytes": size} for path, (sha, size) in files.items()]
    task = await one.task(name=name, instruction=BRIEF, hidden=refs[:2], visible=refs[2:], facets=facets)
    return task["id"]


async def delivered(one: Tenant, task: str, agent: str, files: dict[str, bytes] | None = None) -> str:
    """Return a run of the agent that delivered ``files`` (default: one report) and is done."""
    run = await one.post("/v1/runs", {"task": task, "agent": agent})
    attempt = await one.start(run["id"])
    texts = {"output/report.md": f"report of {run['id'][-6:]}".encode()} if files is None else files
    await one.seal(attempt, [file_entry(path, data, "text/plain") for path, data in texts.items()])
    await one.finish(run["id"])
    return run["id"]


async def panel(one: Tenant, number: int = 1, **more: Any) -> dict[str, Any]:
    """Return an open campaign over ``number`` deliverables of one agent; the tasks' category is ``c<i>``."""
    agent = await one.agent(label="Zephyr 9")
    for i in range(number):
        await delivered(one, await commissioned(one, f"t/{i}", category=f"c{i}"), agent["id"])
    made = await one.post("/v1/campaigns", PANEL | more)
    return await one.post(f"/v1/campaigns/{made['id']}/open", None, 200)


@dataclass(frozen=True)
class Rater:
    id: str
    pseudonym: str
    browser: httpx.AsyncClient

    async def take(self, status: int = 200) -> Any:
        answer = await self.browser.post("/v1/rate/next")
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def rate(self, assignment: str, rating: dict[str, Any], status: int = 200, **more: Any) -> Any:
        body = {"client_id": f"c-{assignment}", "rating": rating} | more
        answer = await self.browser.post(f"/v1/rate/{assignment}/submit", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def do(self, assignment: str, what: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.browser.post(f"/v1/rate/{assignment}/{what}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def rate_all(self, *ratings: int) -> list[str]:
        """Rate items until there is nothing left or the ratings are used up; return the assignments."""
        done: list[str] = []
        for rating in ratings:
            item = await self.take()
            await self.rate(item["id"], {"rating": rating})
            done.append(item["id"])
        return done


@asynccontextmanager
async def joined(one: Tenant, campaign: str, *specs: dict[str, Any]) -> AsyncGenerator[list[Rater]]:
    """Add raters by their specs and let each join by its invitation."""
    added = await one.post(f"/v1/campaigns/{campaign}/raters", {"raters": list(specs)})
    app = app_of(one.state)
    found: list[Rater] = []
    try:
        for rater in added["data"]:
            client = browser(app)
            found.append(Rater(rater["id"], rater["pseudonym"], client))
            answer = await client.post("/rate/session", json={"code": rater["code"]})
            assert answer.status_code == 204, answer.text
        yield found
    finally:
        for rater in found:
            await rater.browser.aclose()


def browser(app: FastAPI) -> httpx.AsyncClient:
    """Return somebody whose browser sends an Origin and keeps cookies, and who has no token."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers={"Origin": BASE})


def people(number: int) -> list[dict[str, Any]]:
    return [{"name": f"Person {i}"} for i in range(1, number + 1)]

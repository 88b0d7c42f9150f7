"""A campaign with deliverables worth looking at, and people who come with invitations."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

from service.domain.campaigns import CampaignSpec, RaterSpec
from service.lifecycle.campaigns import making
from service.store.campaigns import campaigns, raters
from tests.api.helpers import Tenant, file_entry
from tests.browser.conftest import SITE

LABEL, SCAFFOLD, MODEL = "zebrafish-agent", "quagga-scaffold", "okapi/okapi-9-max"
"""What nobody who rates may learn."""
BRIEF = """# A small site
Build **one page** with the total of `input.csv`.

- [the old one](javascript:alert(1))
- ![logo](https://pictures.example.com/logo.png)
"""
INPUT = b"name,amount\nZ\xc3\xbcrich,40\nBern,2\n"
REFERENCE = {"reference/site/index.html": b"<p>42</p>", "reference/readme.md": b"by hand"}


@dataclass(frozen=True)
class Invited:
    campaign_id: str
    codes: list[str]
    runs: list[str]


async def agent(site: Tenant, label: str = LABEL, version: str = "1") -> str:
    scaffold = {"name": SCAFFOLD, "version": version, "kind": "command", "argv": ["true"]}
    await site.client.post("/v1/scaffolds", json=scaffold)
    await site.model(MODEL)
    answer = await site.client.post(
        "/v1/agents", json={"scaffold": f"{SCAFFOLD}@{version}", "model": MODEL, "label": label}
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


async def task(site: Tenant, name: str, note: str = "The total may be in a picture.") -> str:
    async def put(path: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        await site.client.put(f"/v1/blobs/{digest}", content=data)
        return {"path": path, "sha256": digest, "size_bytes": len(data)}

    hidden = [await put(path, data) for path, data in (REFERENCE | {"evaluator_note.md": note.encode()}).items()]
    body = {"name": name, "instruction": BRIEF, "visible": [await put("input.csv", INPUT)], "hidden": hidden}
    return str((await site.post("/v1/tasks", body))["id"])


async def delivered(site: Tenant, task_id: str, agent_id: str, files: Mapping[str, bytes]) -> str:
    """Return a run that is done, with these files."""
    run = await site.post("/v1/runs", {"task": task_id, "agent": agent_id})
    attempt = await site.start(run["id"])
    mimes = {"png": "image/png", "wav": "audio/wav", "webm": "video/webm", "csv": "text/csv", "html": "text/html"}
    entries = [file_entry(path, data, mimes.get(path.rpartition(".")[2])) for path, data in files.items()]
    await site.seal(attempt, entries)
    await site.finish(run["id"])
    return str(run["id"])


async def campaign(site: Tenant, runs: list[str], people: int = 2, **spec: Any) -> Invited:
    body = {"name": "c/one", "form": "human_panel", "instruction": "Rate *fairly*.", "second_pass": False,
            "selection": {"where": {"ids": runs}}}  # fmt: skip
    parsed = CampaignSpec.model_validate(body | spec)
    await asyncio.to_thread(site.state.blobs.store_bytes, parsed.instruction.encode())
    async with site.state.db.transaction() as tx:
        made = await making.make(tx, site.project_id, parsed, "tests")
        found = await raters.add(tx, made, [RaterSpec(name=f"Person {n}") for n in range(people)])
        await campaigns.open_(tx, made)
    return Invited(made.id, [code for _, code in found if code], runs)


async def enter(browser: Browser, code: str, width: int = 1280) -> tuple[BrowserContext, Page]:
    """Come with an invitation's link; end on the page before the first item."""
    context = await browser.new_context(viewport={"width": width, "height": 900})
    page = await context.new_page()
    await page.goto(f"{SITE}/rate#{code}")
    await page.wait_for_url(f"{SITE}/rate/work")
    return context, page

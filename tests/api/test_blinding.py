"""What raters are told: nothing of whose work it is, in bodies, headers and names; and pairs, in either order."""

import json
from typing import Any

import httpx

from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Part
from service.store import evidence, runs
from tests.api.helpers import Tenant
from tests.api.raters import BRIEF, PANEL, Rater, commissioned, delivered, joined, people

PAIRWISE = {"name": "pairs", "form": "pairwise", "instruction": "Compare.", "audit_share": 0.0}
NAMED = {"output/Zephyr-9 report.md": b"# Harbour", "output/acme_one/data.csv": b"1,2\n"}
PNG = bytes.fromhex("89504e470d0a1a0a")


class Seen:
    """Everything that a rater's browser got."""

    def __init__(self, rater: Rater) -> None:
        self.texts: list[str] = []
        rater.browser.event_hooks["response"] = [self._keep]

    async def _keep(self, response: httpx.Response) -> None:
        await response.aread()
        self.texts.append(response.text)
        self.texts += [f"{name}: {value}" for name, value in response.headers.items()]

    def holding(self, *forbidden: str) -> list[str]:
        return [f for f in forbidden for text in self.texts if f.casefold() in text.casefold()]


async def _documented(tenant: Tenant, run_id: str, path: str, text: str) -> None:
    """Give the run's deliverable an evidence document with a picture."""
    sha, size = tenant.state.blobs.store_bytes(PNG)
    image = EvidenceImage(
        label="page 1 of Zephyr 9",
        source="page",
        sha256=sha,
        media_type="image/png",
        width=1,
        height=1,
        size_bytes=size,
    )
    file = EvidenceFile(
        path=path, sha256="0" * 64, size_bytes=1, kind="text", state="extracted", images=(image,),
        parts=(Part(kind="metadata", text=text),),
    )  # fmt: skip
    stored = tenant.state.blobs.store_bytes(EvidenceDocument(files=(file,)).model_dump_json().encode())
    async with tenant.state.db.transaction() as tx:
        digest = (await runs.load(tx, run_id)).deliverable_digest or ""
        row = await evidence.request(tx, tenant.project_id, digest, queued=False)
        made = evidence.Made(
            sha256=stored[0], size_bytes=stored[1], files=1, failed_files=0, omitted_chars=0, took_s=0.1,
            pictures={sha: size},
        )  # fmt: skip
        await evidence.finish(tx, row.id, made)


async def test_nothing_that_a_rater_gets_says_whose_work_it_is(tenant: Tenant) -> None:
    agent = await tenant.agent(label="Zephyr 9", model="acme/one-preview")
    run_id = await delivered(tenant, await commissioned(tenant), agent["id"], NAMED)
    await _documented(tenant, run_id, "output/Zephyr-9 report.md", "Author: Zephyr 9")
    campaign = await tenant.post("/v1/campaigns", PANEL)
    path = f"/v1/campaigns/{campaign['id']}"
    await tenant.post(f"{path}/open", None, 200)
    run = await tenant.get(f"/v1/runs/{run_id}")
    async with joined(tenant, campaign["id"], *people(1)) as (one,):
        seen = Seen(one)
        await one.browser.get("/v1/rate")
        item = await one.take()
        assert (item["brief"], item["note"]) == (BRIEF, "mind the tides")
        assert [s["alias"] for s in item["sides"]] == ["inputs", "reference", "deliverable"]
        files = [f for side in item["sides"] for f in side["files"]]
        assert [f["n"] for f in files] == [*range(len(files))]
        for file in files:
            answer = await one.browser.get(file["href"])
            assert answer.status_code == 200
            assert answer.headers["content-disposition"].startswith("attachment;")
            assert answer.headers["etag"].strip('"') == file["sha256"].removeprefix("sha256:")
        (image,) = item["images"]
        assert (await one.browser.get(image["href"])).content == PNG
        await one.do(item["id"], "beat", {"active_s": 1})
        await one.rate(item["id"], {"rating": 2})
        await one.browser.get(f"/v1/rate/{item['id']}")
        for answer in (f"/v1/rate/{item['id']}/files/99", f"/v1/rate/{item['id']}/images/9"):
            assert (await one.browser.get(answer)).status_code == 404
    forbidden = ("zephyr", "acme", agent["id"], run_id, run["id"][-10:], run["task"]["id"], run["created_at"], "solver",
                 campaign["id"], tenant.project_id, "Person 1")  # fmt: skip
    assert seen.holding(*forbidden) == []
    assert any("▇▇▇" in text for text in seen.texts)
    (told,) = (await tenant.get(f"{path}/items"))["data"]
    assert {(i["where"], i["name"]) for i in told["identifying"]} >= {("name", "zephyr-9"), ("metadata", "zephyr 9")}


async def test_the_lead_may_scan_before_anybody_reads(tenant: Tenant) -> None:
    agent = await tenant.agent(label="Zephyr 9")
    task = await commissioned(tenant)
    await delivered(tenant, task, agent["id"], NAMED)
    await delivered(tenant, task, agent["id"])
    campaign = await tenant.post("/v1/campaigns", PANEL)
    found = await tenant.post(f"/v1/campaigns/{campaign['id']}/scan", None, 200)
    assert found == {"looked_at": 2, "left": 0, "identifying": 1}
    other = await tenant.post("/v1/campaigns", PANEL)
    await tenant.post(f"/v1/campaigns/{other['id']}/open", None, 200)
    found = await tenant.post(f"/v1/campaigns/{other['id']}/scan", None, 200)
    assert found == {"looked_at": 0, "left": 2, "identifying": 0}, "their documents are on their way"


async def _pairs(tenant: Tenant, tasks: int, **pairs: Any) -> tuple[Any, list[Any]]:
    agents = [await tenant.agent(label=name, settings={"x": i}) for i, name in enumerate(("Zephyr 9", "Boreas 2"))]
    for i in range(tasks):
        task = await commissioned(tenant, f"t/{i}", category=f"c{i % 2}")
        for agent in agents:
            await delivered(tenant, task, agent["id"], {"output/r.md": f"{i} of {agent['id']}".encode()})
    spec = PAIRWISE | {"pairs": {"agents": [a["id"] for a in agents]} | pairs}
    campaign = await tenant.post("/v1/campaigns", spec)
    await tenant.post(f"/v1/campaigns/{campaign['id']}/open", None, 200)
    return campaign, agents


async def test_a_pair_is_seen_in_either_order_and_coded_in_its_own(tenant: Tenant) -> None:
    campaign, agents = await _pairs(tenant, 6, human=False, per_pair=6)
    assert (campaign["items"], campaign["short"]) == (6, [])
    favourite = agents[1]["id"]
    orders: set[str] = set()
    async with joined(tenant, campaign["id"], *people(2)) as raters:
        for rater in raters:
            for _ in range(6):
                item = await rater.take()
                sides = {s["alias"]: s["files"] for s in item["sides"]}
                assert [*sides] == ["inputs", "reference", "a", "b"]
                first = (await rater.browser.get(sides["a"][0]["href"])).content
                better = "a" if favourite.encode() in first else "b"
                orders.add(better)
                await rater.rate(item["id"], {"completion": "same", "quality": better})
                again = (await rater.browser.get(f"/v1/rate/{item['id']}")).json()
                assert again["rating"] == {"completion": "same", "quality": better, "notes": ""}
    assert orders == {"a", "b"}
    found = (await tenant.get(f"/v1/campaigns/{campaign['id']}/preferences"))["data"]
    assert len(found) == 6
    assert {(p["first_agent_id"], p["second_agent_id"], p["value"]) for p in found} == {
        (agents[0]["id"], favourite, 0.0)
    }
    assert all(p["choices"] == ["second", "second"] for p in found)
    progress = (await tenant.get(f"/v1/campaigns/{campaign['id']}"))["progress"]
    assert (progress["agreement"], progress["hard_disagreement"], progress["accepted"]) == (1.0, 0.0, None)


async def test_against_the_human_reference_it_is_one_of_the_two(tenant: Tenant) -> None:
    campaign, agents = await _pairs(tenant, 2, human=True, per_pair=2)
    assert campaign["items"] == 6
    async with joined(tenant, campaign["id"], *people(2)) as raters:
        for rater in raters:
            while (answer := await rater.browser.post("/v1/rate/next")).status_code == 200:
                item = answer.json()
                sides = {s["alias"]: s["files"] for s in item["sides"]}
                human = [s for s in ("a", "b") if sides[s][0]["name"] == "final report.md"]
                assert ("reference" in sides) == (not human)
                better = human[0] if human else "same"
                await rater.rate(item["id"], {"completion": better, "quality": "same"})
    found = (await tenant.get(f"/v1/campaigns/{campaign['id']}/preferences"))["data"]
    values = {(p["second_agent_id"], p["value"]) for p in found}
    assert values == {(None, 0.0), (agents[1]["id"], 0.5)}


async def test_pairs_are_spread_over_categories_and_short_ones_are_told(tenant: Tenant) -> None:
    campaign, agents = await _pairs(tenant, 6, human=False, per_pair=4)
    items = (await tenant.get(f"/v1/campaigns/{campaign['id']}/items"))["data"]
    assert sorted(i["categories"][0] for i in items) == ["c0", "c0", "c1", "c1"]
    spec = PAIRWISE | {"pairs": {"agents": [a["id"] for a in agents], "human": False, "per_pair": 50}}
    short = (await tenant.post("/v1/campaigns", spec))["short"]
    assert short == [{"first": agents[0]["id"], "second": agents[1]["id"], "tasks": 6}]


async def test_exports_hold_pseudonyms_and_no_formula(tenant: Tenant) -> None:
    agent = await tenant.agent()
    await delivered(tenant, await commissioned(tenant), agent["id"])
    campaign = await tenant.post("/v1/campaigns", PANEL | {"ratings_per_item": 1})
    path = f"/v1/campaigns/{campaign['id']}"
    await tenant.post(f"{path}/open", None, 200)
    async with joined(tenant, campaign["id"], {"name": "=HYPERLINK(1)"}) as (one,):
        await one.rate_all(2)
    lines = (await tenant.client.get(f"{path}/export")).text.splitlines()
    assert [(json.loads(line)["rater"], json.loads(line)["rating"]["rating"]) for line in lines] == [("R1", 2)]
    csv = (await tenant.client.get(f"{path}/export?format=csv")).text
    assert "HYPERLINK" not in csv
    assert csv.count("\r\n") == 2
    assert (await tenant.client.get(f"{path}/export?table=preferences&format=csv")).text.startswith("id,item_id,")

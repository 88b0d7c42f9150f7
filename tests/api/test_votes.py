"""Votes and exports: what judges said, who may read what quotes criteria, tables of any length."""

import csv
import hashlib
import io
import json
from typing import Any

from service.domain.judging import Vote, VoteState
from service.domain.models import TokenUsage
from service.domain.tasks import GraderSpec
from service.domain.verdicts import Verdict, VerdictState
from service.store import gradings, runs, votes
from service.store.votes import NewVote
from tests.api.helpers import Tenant, file_entry

ASKED = json.dumps({"system": "the hidden rubric", "text": "what was delivered", "images": []}).encode()


def vote(item: str, n: int, judge: str = "acme/one#12345678", **fields: Any) -> Vote:
    digest = hashlib.sha256(ASKED).hexdigest()
    return Vote(
        judge, item, n, VoteState.VALID, {"passed": True, "reasoning": f"quotes {item}"}, model="one", template="t@1",
        rendered_sha256=digest, usage=TokenUsage(input_tokens=10, output_tokens=2), took_s=0.5, **fields,
    )  # fmt: skip


async def judged(tenant: Tenant, many: int = 3, criteria: int = 2) -> str:
    run = await tenant.run()
    await tenant.seal(await tenant.start(run["id"]), [file_entry("output/a", b"x", "text/plain")])
    tenant.state.blobs.store_bytes(ASKED)
    async with tenant.state.db.transaction() as tx:
        (row,) = await gradings.enqueue(tx, await runs.load(tx, run["id"]), [GraderSpec(method="rubric_chain")])
        found = [vote(f"r{n}", 1) for n in range(many)]
        await votes.put(tx, [NewVote(row.id, tenant.project_id, one) for one in found])
        rows = [
            {"id": f"r{n}", "passed": True, "score": 1.0, "max_score": 1.0, "reason": "=1+1"} for n in range(criteria)
        ]
        await gradings.finish(tx, row.id, Verdict(VerdictState.GRADED, 2.0, 4.0, criteria=rows))
    return row.id


async def test_votes_are_listed_page_by_page_and_counted(tenant: Tenant) -> None:
    grading_id = await judged(tenant)
    assert (await tenant.get(f"/v1/gradings/{grading_id}"))["votes_total"] == 3
    page = await tenant.get(f"/v1/gradings/{grading_id}/votes?limit=2")
    rest = await tenant.get(page["next"])
    assert [v["item"] for v in page["data"] + rest["data"]] == ["r0", "r1", "r2"]
    assert rest["next"] is None
    first = page["data"][0]
    assert (first["content"]["reasoning"], first["usage"]["input_tokens"], first["template"]) == (
        "quotes r0",
        10,
        "t@1",
    )
    await tenant.get(f"/v1/gradings/{grading_id}/votes?color=red", 422)


async def test_what_quotes_criteria_needs_hidden_read(tenant: Tenant) -> None:
    grading_id = await judged(tenant)
    path = f"/v1/gradings/{grading_id}/votes"
    asked = f"{path}/rendered?judge=acme/one%2312345678&item=r1&n=1"
    answer = await tenant.client.get(asked)
    assert (answer.status_code, answer.content) == (200, ASKED)
    assert answer.headers["content-disposition"].startswith("attachment")
    reader = await tenant.token("gradings:read")
    assert (await tenant.client.get(asked, headers=reader)).status_code == 403
    listed = (await tenant.client.get(path, headers=reader)).json()["data"]
    assert {v["content"] for v in [dict(v, content=str(v["content"])) for v in listed]} == {"None"}
    for table, column in (("votes", "content"), ("criteria", "reason")):
        text = (await tenant.client.get(f"/v1/gradings/export.csv?table={table}", headers=reader)).text
        assert {row[column] for row in csv.DictReader(io.StringIO(text))} == {""}
    await tenant.get(f"{path}/rendered?judge=acme/one%2312345678&item=r9&n=1", 404)
    tenant.state.blobs.path(hashlib.sha256(ASKED).hexdigest()).unlink()
    assert (await tenant.client.get(asked)).status_code == 410


async def test_exports_hold_every_row_once_and_no_formula(tenant: Tenant) -> None:
    ids = [await judged(tenant, many=2, criteria=700), await judged(tenant, many=1, criteria=1)]
    tables: dict[str, list[dict[str, str]]] = {}
    for table in ("verdicts", "criteria", "votes"):
        answer = await tenant.client.get(f"/v1/gradings/export.csv?table={table}")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        tables[table] = list(csv.DictReader(io.StringIO(answer.text, newline="")))
        lines = (await tenant.client.get(f"/v1/gradings/export.jsonl?table={table}")).text.splitlines()
        assert [json.loads(line)["grading_id"] for line in lines] == [row["grading_id"] for row in tables[table]]
    assert [row["grading_id"] for row in tables["verdicts"]] == ids
    assert (tables["verdicts"][0]["fraction"], tables["verdicts"][0]["agent"]) == ("0.5", "solver@1")
    assert [len([r for r in tables["criteria"] if r["grading_id"] == i]) for i in ids] == [700, 1]
    assert len({(r["grading_id"], r["criterion"]) for r in tables["criteria"]}) == 701
    assert {row["reason"] for row in tables["criteria"]} == {"'=1+1"}
    assert [len([r for r in tables["votes"] if r["grading_id"] == i]) for i in ids] == [2, 1]
    assert json.loads(tables["votes"][0]["content"])["passed"] is True


async def test_exports_take_the_filters_of_the_list_and_no_others(tenant: Tenant, other: Tenant) -> None:
    grading_id = await judged(tenant)
    await judged(other)
    for query, found in (("", 1), ("?method=exact", 0), (f"?ids={grading_id}", 1), ("?state=failed", 0)):
        text = (await tenant.client.get(f"/v1/gradings/export.jsonl{query}")).text
        assert len(text.splitlines()) == found, query
    for wrong in ("color=red", "table=secrets", "sort=score", "limit=3"):
        await tenant.get(f"/v1/gradings/export.csv?{wrong}", 422)

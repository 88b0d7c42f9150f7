"""Publications: they stay as they are, are open to those they are meant for, and say what is withdrawn."""

import io
import json
import zipfile
from typing import Any

from service.store import blob_refs
from service.store.tables_benchmarks import operations
from tests.api.helpers import Tenant
from tests.api.results import filled
from tests.api.test_exports import exported

ALIASES = {"profile": "public"}


async def an_export(one: Tenant, **more: Any) -> Any:
    evaluation_id, _ = await filled(one)
    done = await exported(one, evaluation_id, kind="overview", **more)
    if done["state"] != "succeeded":
        names = [finding["name"] for finding in done["problem"]["findings"]]
        done = await exported(one, evaluation_id, kind="overview", waivers=names, **more)
    assert done["state"] == "succeeded", done["problem"]
    return done


async def test_an_export_is_published_once_and_outlives_its_operation(tenant: Tenant) -> None:
    done = await an_export(tenant)
    wish = {"export": done["id"], "name": "week-48"}
    made = await tenant.post("/v1/publications", wish)
    again = await tenant.post("/v1/publications", wish, 200)
    assert again == made
    assert (made["number"], made["public"], made["url"], made["previous"], made["newest"]) == (
        1,
        False,
        None,
        None,
        None,
    )
    async with tenant.state.db.transaction() as tx:
        await tx.execute(operations.delete().where(operations.c.id == done["id"]))
        await blob_refs.drop_refs(tx, blob_refs.EXPORT, done["id"])
    await tenant.state.blobs.gc(tenant.state.db, older_than_s=0)
    archive = await tenant.client.get(f"/v1/publications/{made['id']}/archive.zip")
    with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
        inside = json.loads(packed.read("report/report.json"))
    assert await tenant.get(f"/v1/publications/{made['id']}/report") == inside
    page = await tenant.client.get(f"/v1/publications/{made['id']}/report", headers={"accept": "text/html"})
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert inside["header"]["title"] in page.text


async def test_only_what_was_made_for_the_public_is_opened_to_it(tenant: Tenant) -> None:
    inner = await an_export(tenant)
    refused = await tenant.post("/v1/publications", {"export": inner["id"], "name": "inner", "public": True}, 409)
    assert refused["type"].endswith("export_not_public")
    kept = await tenant.post("/v1/publications", {"export": inner["id"], "name": "inner"})
    assert (await tenant.client.patch(f"/v1/publications/{kept['id']}", json={"public": True})).status_code == 409
    anybody = {"authorization": ""}
    assert (await tenant.client.get(f"/published/{kept['id']}", headers=anybody)).status_code == 404


async def test_anybody_reads_a_public_one_until_it_is_closed(tenant: Tenant) -> None:
    done = await an_export(tenant, **ALIASES)
    made = await tenant.post("/v1/publications", {"export": done["id"], "name": "open", "public": True})
    tenant.client.headers.pop("authorization")
    for path, kind in (
        ("", "text/html; charset=utf-8"),
        ("/report.json", "application/json"),
        ("/archive.zip", "application/zip"),
    ):
        answer = await tenant.client.get(made["url"] + path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        again = await tenant.client.get(made["url"] + path, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
    assert (await tenant.client.get(f"/v1/publications/{made['id']}")).status_code == 401


async def test_later_ones_link_back(tenant: Tenant) -> None:
    first_export = await an_export(tenant)
    (evaluation_id,) = first_export["result"]["evaluations"]
    second_export = await exported(tenant, evaluation_id, kind="overview")
    exports = (first_export, second_export)
    ids = [(await tenant.post("/v1/publications", {"export": one["id"], "name": "series"}))["id"] for one in exports]
    first, second = [await tenant.get(f"/v1/publications/{one}") for one in ids]
    assert (first["number"], first["previous"], first["newest"]) == (1, None, ids[1])
    assert (second["number"], second["previous"], second["newest"]) == (2, ids[0], None)


async def test_a_row_is_withdrawn_with_its_reason_and_the_zip_stays(tenant: Tenant) -> None:
    done = await an_export(tenant)
    made = await tenant.post("/v1/publications", {"export": done["id"], "name": "wrong"})
    path = f"/v1/publications/{made['id']}"
    before = await tenant.get(f"{path}/report")
    agent = before["tables"][0]["rows"][0]["agent"]
    refused = await tenant.post(f"{path}/withdrawals", {"agent": "nobody", "reason": "x"}, 422)
    assert refused["type"].endswith("unknown_agent")
    wish = {"agent": agent, "reason": "started with <another> flag"}
    now = await tenant.post(f"{path}/withdrawals", wish, 200)
    assert now == await tenant.post(f"{path}/withdrawals", wish, 200)
    await tenant.post(f"{path}/withdrawals", {**wish, "reason": "y"}, 409)
    assert (now["digest"], now["archive"]) == (made["digest"], made["archive"])
    shown = await tenant.get(f"{path}/report")
    row = next(row for row in shown["tables"][0]["rows"] if row["agent"] == agent)
    figures = [column["name"] for column in shown["tables"][0]["columns"] if column["unit"]]
    assert {row[name] for name in figures} == {None}
    assert "started with <another> flag" in shown["tables"][0]["notes"][-1]
    page = await tenant.client.get(f"{path}/report", headers={"accept": "text/html"})
    assert "started with &lt;another&gt; flag" in page.text

"""Integrity reports over HTTP and on the run's page: every state, nobody else's, nothing that runs."""

import json
from dataclasses import replace

import httpx
import pytest

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.integrity import Facts, FileReport, IntegrityReport, Problem, ProblemType
from service.store import integrity, runs
from service.store.rows import IntegrityRow
from tests.api.helpers import Tenant, file_entry
from tests.api.test_pages import log_in, pages

__all__ = ["pages"]
NAME = "output/'><img src=x onerror=alert(1)>.png"
REPORT = IntegrityReport(
    files=(
        FileReport(path="output/a.pdf", size_bytes=3, claims="pdf", sniffed="pdf", opens=True, facts=Facts(pages=2)),
        FileReport(
            path=NAME, size_bytes=1, claims="png", sniffed="html", opens=False,
            problems=(Problem(type=ProblemType.TYPE_MISMATCH, detail="<script>alert(2)</script>\u202e"),),
        ),
        FileReport(
            path="output/huge.mp4", size_bytes=9, claims="mp4",
            problems=(Problem(type=ProblemType.TOO_LARGE_TO_CHECK),),
        ),
    )
)  # fmt: skip


async def _sealed(tenant: Tenant) -> str:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    link = ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="/etc/passwd")
    await tenant.seal(attempt, [file_entry("output/a.pdf", b"one"), file_entry(NAME, b"x"), (link, None)])
    return run["id"]


async def _request(tenant: Tenant, run_id: str, *, queued: bool) -> IntegrityRow:
    async with tenant.state.db.transaction() as tx:
        run = await runs.load(tx, run_id)
        return await integrity.request(tx, tenant.project_id, run.deliverable_digest or "", queued=queued)


async def _ready(tenant: Tenant, run_id: str) -> IntegrityRow:
    row = await _request(tenant, run_id, queued=False)
    async with tenant.state.db.transaction() as tx:
        await integrity.finish(tx, row.id, REPORT)
        found = await integrity.by_id(tx, row.id)
        assert found is not None
        await integrity.attach(tx, run_id, found)
        await integrity.attach(tx, run_id, found)
    return found


async def test_states_from_nothing_to_a_report(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/integrity"
    assert (await tenant.get(path))["state"] == "pending"
    await tenant.post(path, None, 409)
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/integrity"
    assert (await tenant.get(path))["state"] == "pending"
    await tenant.finish(run_id)
    lost = await tenant.get(path)
    assert (lost["state"], lost["cause"], lost["files"]) == ("unavailable", "not_made", [])
    asked = await tenant.post(path, None, 202)
    assert (asked["state"], asked["cause"]) == ("pending", None)
    row = await _request(tenant, run_id, queued=False)
    async with tenant.state.db.transaction() as tx:
        assert row.id in await integrity.open_ids(tx)
        await integrity.fail(tx, row.id, "no_rooms")
    failed = await tenant.get(path)
    assert (failed["state"], failed["cause"]) == ("unavailable", "no_rooms")
    await _ready(tenant, run_id)
    ready = await tenant.get(path)
    assert (ready["state"], ready["problems"], len(ready["files"])) == ("ready", 1, 3)
    assert ready["files"][0]["facts"]["pages"] == 2
    assert (await tenant.post(path, None, 200))["state"] == "ready"


async def test_the_tag_changes_with_the_state_and_stays_with_a_report(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/integrity"
    pending = (await tenant.client.get(path)).headers["etag"]
    await _ready(tenant, run_id)
    answer = await tenant.client.get(path, headers={"If-None-Match": pending})
    assert answer.status_code == 200
    tag = answer.headers["etag"]
    assert (await tenant.client.get(path, headers={"If-None-Match": tag})).status_code == 304


async def test_a_run_says_how_many_problems_and_its_log_when_they_were_found(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    before = await tenant.get(f"/v1/runs/{run_id}")
    assert before["deliverable"]["problems"] == 1
    await _ready(tenant, run_id)
    after = await tenant.get(f"/v1/runs/{run_id}")
    assert after["deliverable"]["problems"] == 2
    assert after["revision"] > before["revision"]
    events = [e for e in (await tenant.get(f"/v1/runs/{run_id}/events"))["data"] if e["type"] == "deliverable.checked"]
    assert len(events) == 1
    assert events[0]["payload"] == {
        "digest": after["deliverable"]["digest"].removeprefix("sha256:"), "files": 3, "problems": 1, "version": "1",
    }  # fmt: skip
    listed = {a["path"]: a for a in (await tenant.get(f"/v1/runs/{run_id}/artifacts"))["data"]}
    assert (listed["output/a.pdf"]["opens"], listed["output/a.pdf"]["problems"]) == (True, [])
    assert (listed[NAME]["opens"], listed[NAME]["problems"]) == (False, ["type_mismatch"])
    assert (listed["output/link"]["opens"], listed["output/link"]["problems"]) == (None, None)


async def test_a_report_of_another_deliverable_is_not_said_of_the_run(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    row = await _ready(tenant, await _sealed(tenant))
    async with tenant.state.db.transaction() as tx:
        await integrity.attach(tx, run_id, replace(row, digest="0" * 64))
    assert (await tenant.get(f"/v1/runs/{run_id}"))["deliverable"]["problems"] == 1


@pytest.mark.fault(57)
async def test_equal_deliverables_of_two_projects_have_reports_of_their_own(tenant: Tenant, other: Tenant) -> None:
    mine, theirs = await _sealed(tenant), await _sealed(other)
    await _ready(other, theirs)
    assert (await tenant.get(f"/v1/runs/{mine}/integrity"))["state"] == "pending"
    assert (await tenant.get(f"/v1/runs/{mine}/artifacts"))["data"][0]["opens"] is None
    await tenant.get(f"/v1/runs/{theirs}/integrity", 404)
    await tenant.post(f"/v1/runs/{theirs}/integrity", None, 404)


async def test_a_report_goes_with_the_last_run_that_it_is_about(tenant: Tenant) -> None:
    first, second = await _sealed(tenant), await _sealed(tenant)
    row = await _ready(tenant, first)
    for run_id, left in ((first, True), (second, False)):
        await tenant.finish(run_id)
        assert (await tenant.client.delete(f"/v1/runs/{run_id}")).status_code == 204
        async with tenant.state.db.reading() as tx:
            assert (await integrity.by_id(tx, row.id) is not None) == left


@pytest.mark.fault(69, 71)
async def test_the_page_shows_findings_as_text(tenant: Tenant, pages: httpx.AsyncClient) -> None:
    run_id = await _sealed(tenant)
    await _ready(tenant, run_id)
    await log_in(pages, tenant.secret)
    text = (await pages.get(f"/runs/{run_id}")).text
    assert "type mismatch" in text
    assert "Files with problems: 1." in text
    assert "&lt;script&gt;alert(2)&lt;/script&gt;⟨U+202E⟩" in text
    assert "<img" not in text
    assert "<script>alert" not in text


async def test_scopes(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/integrity"
    reader = await tenant.token("runs:read")
    assert (await tenant.client.get(path, headers=reader)).status_code == 200
    assert (await tenant.client.post(path, headers=reader)).status_code == 403
    assert json.loads((await tenant.client.get(path)).text)["run_id"] == run_id

"""Evidence over HTTP: every state, file by file, pictures that cannot run, nobody else's."""

from hashlib import sha256

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Omitted, Part
from service.store import evidence, runs
from service.store.evidence import Made
from service.store.rows_grading import EvidenceRow
from tests.api.helpers import Tenant, file_entry

PNG = b"\x89PNG\r\n\x1a\n and the rest"
PICTURE = sha256(PNG).hexdigest()
NAME = "output/'><img src=x onerror=alert(1)>.txt"


def document() -> EvidenceDocument:
    image = EvidenceImage(
        label="page 1", source="page", sha256=PICTURE, media_type="image/png", width=8, height=9, size_bytes=len(PNG)
    )
    text = EvidenceFile(
        path=NAME, sha256="1" * 64, size_bytes=1, kind="text", state="extracted", omitted=Omitted(chars=5),
        parts=(Part(kind="text", text="<script>alert(2)</script>\u202e"),), notes=("a note",),
    )  # fmt: skip
    book = EvidenceFile(
        path="output/a.pdf", sha256="0" * 64, size_bytes=3, kind="pdf", state="extracted", images=(image,)
    )
    return EvidenceDocument(files=(book, text), skipped=(("output/link", "symlink"),), omitted=Omitted(chars=5))


async def _sealed(tenant: Tenant) -> str:
    run = await tenant.run()
    attempt = await tenant.start(run["id"])
    link = ArtifactEntry("output/link", EntryKind.SYMLINK, link_target="/etc/passwd")
    await tenant.seal(attempt, [file_entry("output/a.pdf", b"one"), file_entry(NAME, b"x"), (link, None)])
    return run["id"]


async def _request(tenant: Tenant, run_id: str, *, queued: bool = False) -> EvidenceRow:
    async with tenant.state.db.transaction() as tx:
        run = await runs.load(tx, run_id)
        return await evidence.request(tx, tenant.project_id, run.deliverable_digest or "", queued=queued)


async def _ready(tenant: Tenant, run_id: str) -> EvidenceRow:
    row = await _request(tenant, run_id)
    content = document().model_dump_json(exclude_defaults=True).encode()
    digest = sha256(content).hexdigest()
    tenant.state.blobs.store_many({digest: content, PICTURE: PNG})
    made = Made(digest, len(content), 2, 0, 5, 0.5, {PICTURE: len(PNG)})
    async with tenant.state.db.transaction() as tx:
        await evidence.finish(tx, row.id, made)
    return row


async def test_states_from_nothing_to_a_document(tenant: Tenant) -> None:
    run = await tenant.run()
    path = f"/v1/runs/{run['id']}/evidence"
    assert (await tenant.get(path))["state"] == "pending"
    await tenant.post(path, None, 409)
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/evidence"
    first = await tenant.get(path)
    assert (first["state"], first["cause"], first["files"]) == ("unavailable", "not_made", [])
    assert (await tenant.post(path, None, 202))["state"] == "pending"
    row = await _request(tenant, run_id)
    async with tenant.state.db.transaction() as tx:
        assert row.id in await evidence.open_ids(tx)
        await evidence.fail(tx, row.id, "room_failed")
        assert row.id not in await evidence.open_ids(tx)
    assert (await tenant.get(path))["cause"] == "room_failed"
    assert (await tenant.post(path, None, 202))["cause"] is None
    await _ready(tenant, run_id)
    ready = await tenant.get(path)
    assert (ready["state"], ready["version"], ready["took_s"]) == ("ready", "1", 0.5)
    assert [f["path"] for f in ready["files"]] == ["output/a.pdf", NAME]
    assert ready["files"][1]["parts"][0]["text"] == "<script>alert(2)</script>\u202e"
    assert (ready["omitted"]["chars"], ready["skipped"]) == (5, [["output/link", "symlink"]])
    assert (await tenant.post(path, None, 200))["state"] == "ready"


async def test_one_file_of_it(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    await _ready(tenant, run_id)
    one = await tenant.client.get(f"/v1/runs/{run_id}/evidence", params={"file": NAME})
    assert [f["path"] for f in one.json()["files"]] == [NAME]
    none = await tenant.client.get(f"/v1/runs/{run_id}/evidence", params={"file": "output/other"})
    assert none.status_code == 404


async def test_the_tag_changes_with_the_state_and_stays_with_a_document(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    path = f"/v1/runs/{run_id}/evidence"
    before = (await tenant.client.get(path)).headers["etag"]
    await _ready(tenant, run_id)
    answer = await tenant.client.get(path, headers={"If-None-Match": before})
    assert answer.status_code == 200
    again = await tenant.client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


async def test_pictures_are_downloads_that_cannot_run(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    row = await _ready(tenant, run_id)
    path = f"/v1/runs/{run_id}/evidence/images"
    answer = await tenant.client.get(f"{path}/{PICTURE}")
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = await tenant.client.get(f"{path}/{PICTURE}", headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, PNG[:4])
    async with tenant.state.db.reading() as tx:
        found = await evidence.by_id(tx, row.id)
    assert found is not None
    for digest in (found.sha256, sha256(b"one").hexdigest(), "no digest"):
        assert (await tenant.client.get(f"{path}/{digest}")).status_code == 404


async def test_equal_deliverables_of_two_projects_have_documents_of_their_own(tenant: Tenant, other: Tenant) -> None:
    mine, theirs = await _sealed(tenant), await _sealed(other)
    await _ready(tenant, mine)
    assert (await other.get(f"/v1/runs/{theirs}/evidence"))["state"] == "unavailable"
    assert (await other.client.get(f"/v1/runs/{mine}/evidence")).status_code == 404
    assert (await other.client.get(f"/v1/runs/{mine}/evidence/images/{PICTURE}")).status_code == 404
    assert (await other.client.get(f"/v1/runs/{theirs}/evidence/images/{PICTURE}")).status_code == 404


async def test_a_document_goes_with_the_last_run_that_it_is_about(tenant: Tenant) -> None:
    first, second = await _sealed(tenant), await _sealed(tenant)
    row = await _ready(tenant, first)
    for run_id in (first, second):
        await tenant.finish(run_id)
    await tenant.client.delete(f"/v1/runs/{first}")
    assert (await tenant.get(f"/v1/runs/{second}/evidence"))["state"] == "ready"
    async with tenant.state.db.reading() as tx:
        assert await evidence.picture_bytes(tx, row, PICTURE) == len(PNG)
    await tenant.client.delete(f"/v1/runs/{second}")
    async with tenant.state.db.reading() as tx:
        assert await evidence.by_id(tx, row.id) is None
        assert await evidence.picture_bytes(tx, row, PICTURE) is None


async def test_a_lost_document_is_said_to_be_lost_and_made_again(tenant: Tenant) -> None:
    run_id = await _sealed(tenant)
    await _ready(tenant, run_id)
    async with tenant.state.db.reading() as tx:
        run = await runs.load(tx, run_id)
        row = await evidence.present(tx, tenant.project_id, run.deliverable_digest or "")
    assert row is not None
    tenant.state.blobs.path(row.sha256 or "").unlink()
    found = await tenant.get(f"/v1/runs/{run_id}/evidence")
    assert (found["state"], found["cause"]) == ("unavailable", "lost")
    assert (await tenant.post(f"/v1/runs/{run_id}/evidence", None, 202))["state"] == "pending"
    async with tenant.state.db.reading() as tx:
        assert row.id in await evidence.open_ids(tx)

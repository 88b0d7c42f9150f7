"""A run that met its answer key is found out; one that did not is left alone."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.benchmarks import BenchmarkHead, BenchmarkItem, Source
from service.domain.events import EventType
from service.domain.grants import Grant
from service.domain.run_states import Flag
from service.domain.tasks import FileRef, TaskManifest
from service.lifecycle.contamination.scanning import KeptMarks, scan
from service.store import artifacts, benchmarks, blob_refs, contamination, events, tasks
from service.store.database import Tx
from tests.integration.gateway.bench import GateBench, messages

pytestmark = pytest.mark.asyncio(loop_scope="module")
KEY = (
    "Credit note 8813 was never posted, therefore receivables are overstated by 2 410 euros; the reply must say so, "
    "name the responsible branch in Lyon and ask for a corrected statement before the audit committee meets."
)
CANARY = "canary-string 3b241101-e2bb-4255-8caf-4136c566a962"
FACTS = "Our client in Marseille pays late because its treasurer left in June and nobody signs transfers above 5000 euros now."


async def _stored(tx: Tx, bench: GateBench, project_id: str, path: str, content: str) -> FileRef:
    sha, size = bench.blobs.store_bytes(content.encode())
    await blob_refs.add_refs(tx, project_id, "upload", sha, [(sha, size)])
    return FileRef(path=path, sha256=sha, size_bytes=size)


async def scene(bench: GateBench) -> Grant:
    """A run of a task with an answer key, of a benchmark with a canary; its client knows something of its own."""
    grant = await bench.grant()
    async with bench.db.transaction() as tx:
        hidden = [
            await _stored(tx, bench, grant.project_id, "rubrics.json", json.dumps({"criterion": KEY})),
            await _stored(tx, bench, grant.project_id, "facts.md", FACTS),
        ]
        manifest = TaskManifest.model_validate(
            {
                "name": "t/key",
                "instruction": "Check the receivables.",
                "hidden": hidden,
                "client": {"facts": "facts.md"},
            }
        )
        task, _ = await tasks.create(tx, grant.project_id, manifest)
        source = Source(importer="rows", importer_version="1")
        head = BenchmarkHead(
            name="keyed", version="1", source=source, canaries=[CANARY], deny_list=["Answers.example:443"]
        )
        await benchmarks.insert_whole(
            tx, grant.project_id, head, head.model_dump_json(), {}, [(BenchmarkItem(key="a", task=manifest), task.id)]
        )
        await tx.execute(text("UPDATE runs SET task_id = :t WHERE id = :r"), {"t": task.id, "r": grant.run_id})
    return grant


async def found(bench: GateBench, grant: Grant) -> tuple[list[dict[str, Any]], list[str], list[dict[str, Any]]]:
    """Scan twice, as after a death in between; return hits, flags and events."""
    async with bench.db.transaction() as tx:
        await tx.execute(text("INSERT INTO contamination_scans (run_id) VALUES (:r)"), {"r": grant.run_id})
    known = KeptMarks(bench.blobs)
    for _ in range(2):
        await scan(bench.db, bench.blobs, known, grant.run_id)
    async with bench.db.reading() as tx:
        row = await contamination.get(tx, grant.run_id)
        said = await events.read(tx, grant.run_id, 0, 1000, [EventType.CONTAMINATION])
    assert row is not None
    assert row.marks
    return row.hits, [*(await bench.run_row(grant)).flags], [event.payload for event in said]


async def ask(bench: GateBench, grant: Grant, content: str) -> None:
    client = await bench.client(grant)
    body = messages(messages=[{"role": "user", "content": content}])
    assert (await client.post("/anthropic/v1/messages", json=body)).status_code == 200
    await bench.ledger.flush()


async def test_a_run_that_never_met_its_key_is_clean(bench: GateBench) -> None:
    grant = await scene(bench)
    await ask(bench, grant, "The client says: " + FACTS)
    hits, flags, said = await found(bench, grant)
    assert hits == []
    assert Flag.CONTAMINATION_SUSPECTED not in flags
    assert said == []


async def test_a_key_in_what_a_tool_brought_is_found(bench: GateBench) -> None:
    grant = await scene(bench)
    page = json.dumps({"page": f"<pre>{CANARY}\n{KEY.replace(' ', chr(10), 3)}</pre>"})
    await ask(bench, grant, "curl says: " + page)
    hits, flags, said = await found(bench, grant)
    assert {hit["kind"] for hit in hits} == {"canary", "shingle"}
    assert {hit["where"] for hit in hits} == {"model request 1"}
    assert {hit["source"] for hit in hits} == {"", "rubrics.json"}
    assert Flag.CONTAMINATION_SUSPECTED in flags
    assert [event["kinds"] for event in said] == [["canary", "shingle"]]
    assert KEY[:40].lower() not in json.dumps(said)


async def test_a_hidden_file_that_was_delivered_is_found(bench: GateBench) -> None:
    grant = await scene(bench)
    async with bench.db.transaction() as tx:
        task_id = (await tx.execute(text("SELECT task_id FROM runs WHERE id = :r"), {"r": grant.run_id})).scalar_one()
        task = await tasks.get(tx, grant.project_id, task_id)
        assert task is not None
        ref = task.manifest.hidden[0]
        entry = ArtifactEntry(
            path="copy.bin", kind=EntryKind.FILE, size_bytes=ref.size_bytes, sha256=ref.sha256, mime="application/x"
        )
        await artifacts.insert_all(tx, grant.run_id, Deliverable((entry,)))
    hits, flags, _ = await found(bench, grant)
    assert [(hit["kind"], hit["where"]) for hit in hits] == [("file", "deliverable copy.bin")]
    assert Flag.CONTAMINATION_SUSPECTED in flags


async def test_a_benchmarks_deny_list_is_its_tasks(bench: GateBench) -> None:
    grant = await scene(bench)
    async with bench.db.reading() as tx:
        task_id = (await tx.execute(text("SELECT task_id FROM runs WHERE id = :r"), {"r": grant.run_id})).scalar_one()
        assert await contamination.deny_lists_of(tx, grant.project_id, task_id) == ["Answers.example:443"]
        assert await contamination.deny_lists_of(tx, "prj_other", task_id) == []

"""Many deliverables at little cost: uploads of external agents, with rubrics to be judged by and evidence that is there."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from service.domain.agents import AgentSpec, ScaffoldManifest
from service.domain.artifacts import ArtifactEntry, Deliverable, EntryKind
from service.domain.evidence import EvidenceDocument, EvidenceFile, Part
from service.lifecycle.clock import Clock
from service.lifecycle.grade import GradeContext, grade
from service.lifecycle.submit import RunRequest, submit
from service.lifecycle.uploads import manifest_bytes, seal_upload
from service.store import agents, evidence, grading_jobs, scaffolds
from service.store.evidence import Made
from service.store.rows import RunRow
from tests.integration.lifecycle.stage import Stage


async def external_agent(stage: Stage, name: str) -> str:
    async with stage.db.transaction() as tx:
        await scaffolds.register(tx, stage.project.id, ScaffoldManifest(name=name, version="1", kind="external"))
        return (await agents.create(tx, stage.project.id, AgentSpec(scaffold=f"{name}@1")))[0].id


async def judged_task(stage: Stage, name: str, rubrics: int, **fields: Any) -> str:
    """A task whose hidden file has so many rubrics; it names no grader of its own."""
    listed = [{"rubric": f"Part {n}", "weight": 1, "criterion": [f"It has part {n}."]} for n in range(rubrics)]
    hidden = [await stage.upload("RUBRICS.json", json.dumps({"rubrics": listed}).encode())]
    return await stage.task(name=name, hidden=hidden, visible=[], graders=[], **fields)


async def deliver(stage: Stage, task: str, agent: str, text: str, plan: str = "task@1") -> RunRow:
    """Upload one text as what the agent made, and make its evidence as an extraction would."""
    data = text.encode()
    sha256, size = stage.blobs.store_bytes(data)
    deliverable = Deliverable((ArtifactEntry("output/work.txt", EntryKind.FILE, size, sha256, "text/plain"),))
    manifest = stage.blobs.store_bytes(manifest_bytes(deliverable))
    async with stage.db.transaction() as tx:
        run = await submit(tx, stage.project, RunRequest(task=task, agent=agent, plan=plan))
        sealed = await seal_upload(tx, run.id, deliverable, manifest, Clock())
        await _extracted(stage, deliverable, text)
    return sealed


async def _extracted(stage: Stage, deliverable: Deliverable, text: str) -> None:
    (file,) = deliverable.files
    read = EvidenceFile(
        path=file.path, sha256=file.sha256 or "", size_bytes=file.size_bytes, kind="text", state="extracted",
        parts=(Part(kind="text", text=text),),
    )  # fmt: skip
    document = EvidenceDocument(files=(read,)).model_dump_json().encode()
    sha256, size = stage.blobs.store_bytes(document)
    async with stage.db.transaction() as tx:
        row = await evidence.request(tx, stage.project.id, deliverable.digest(), queued=False)
        await evidence.finish(tx, row.id, Made(sha256, size, 1, 0, 0, 0.1, {}))


async def grade_due(stage: Stage, ctx: GradeContext, at_once: int = 8) -> int:
    """Decide everything that is due; return how many gradings there were."""
    done = 0
    while True:
        async with stage.db.reading() as tx:
            ids: Sequence[str] = await grading_jobs.open_ids(tx)
        if not ids:
            return done
        for start in range(0, len(ids), at_once):
            await asyncio.gather(*(grade(ctx, grading_id) for grading_id in ids[start : start + at_once]))
        done += len(ids)

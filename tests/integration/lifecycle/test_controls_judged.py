"""Controls before a real panel: a judge at the wire that pays for whole work does not pay for its first quarter."""

import json
import re
from pathlib import Path
from typing import Any

from service.domain.controls import ControlKind, ControlsSpec
from service.lifecycle.controls.figures import figures, seen
from service.lifecycle.controls.making import Workshop, make_control
from service.lifecycle.grade import grade
from service.store import grading_jobs
from tests.integration.lifecycle.court import Court
from tests.integration.lifecycle.stage import Stage

REPORT = "open('output/report.md', 'w').write('Bees. ' * 200 + 'That is all.')"
_NONCE = re.compile(r'"nonce": "([0-9a-f]{32})"')


def pays_for_whole_work(body: dict[str, Any]) -> str:
    nonce = _NONCE.search(body["system"][0]["text"])
    assert nonce is not None
    whole = "That is all." in body["messages"][-1]["content"][0]["text"]
    fields = {"produced": True, "on_spec": whole, "client_plausible": whole, "pay_worthy": whole, "fabricated": False}
    check, reason = {"reasoning": "no", "holds": False}, None if whole else "harness_limit"
    return json.dumps({"nonce": nonce[1], "reasoning": "r", "check": check, **fields, "failure_reason": reason})


async def test_a_panel_tells_whole_work_from_a_quarter(stage: Stage, tmp_path: Path) -> None:
    settings = {"judges": [{"model": "test/judge"}]}
    kinds = [ControlKind.QUARTER, ControlKind.EMPTY]
    async with Court.open(stage, tmp_path) as court:
        court.server.answer = pays_for_whole_work
        task = await stage.task(
            instruction="Write about bees.", graders=[{"method": "llm_panel", "settings": settings}]
        )
        run = await stage.submit(task, await stage.agent("writer", code=REPORT))
        await stage.work(stage.context(), run.id)
        spec = ControlsSpec(kinds=kinds, originals=[run.id])
        for kind in kinds:
            assert await make_control(Workshop(stage.db, stage.blobs), stage.project.id, spec, run.id, kind) == "made"
        async with stage.db.reading() as tx:
            ids = await grading_jobs.open_ids(tx, "judges")
        for grading_id in ids:
            await grade(court.context(), grading_id)
        rows = [await court.row(grading_id) for grading_id in ids]
        assert [(r.state, r.detail["votes"], r.detail["label"]) for r in rows] == [
            ("graded", 3, None), ("graded", 3, "harness_limit"), ("graded", 0, "no_deliverable"),
        ]  # fmt: skip
        assert len(court.server.bodies) == 6
        async with stage.db.reading() as tx:
            found = figures(spec, await seen(tx, stage.project.id, spec))
    assert [(f.kind, f.pairs, f.originals.acceptance, f.altered.acceptance) for f in found] == [
        (ControlKind.QUARTER, 1, 1.0, 0.0), (ControlKind.EMPTY, 1, 1.0, 0.0),
    ]  # fmt: skip

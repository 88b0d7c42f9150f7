"""JobBench's own result files: what ``rubric_chain`` decided, in its layout; and verdicts that its harness made."""

import asyncio
import json
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import GradingsRead, GradingsWrite, State
from service.api.downloads import download_headers
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.rendering import json_answer
from service.api.resources.gradings import Grading, view
from service.api.resources.tasks import HIDDEN_READ
from service.graders.rubric_chain import result_file
from service.lifecycle import jobbench
from service.store.database import Tx

router = APIRouter(prefix="/v1", tags=["gradings"], route_class=StrictRoute)


class JobbenchImport(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    result: dict[str, Any]
    """The file ``<judge>_judge.json`` as it is."""
    primary: bool = False
    """The verdict counts as the run's, in a new round; else it stands beside it."""


@router.get("/gradings/{grading_id}/jobbench", operation_id="export_jobbench", response_class=Response)
async def export_jobbench(grading_id: str, caller: GradingsRead, state: State) -> Response:
    """Download a ``rubric_chain`` grading as JobBench's harness writes it; with the rubrics, so ``hidden:read`` is needed."""
    caller.require(HIDDEN_READ)
    async with state.db.reading() as tx:
        name, file = await jobbench.exported(tx, caller.project_id, grading_id)
    body = await asyncio.to_thread(json.dumps, file, ensure_ascii=False, indent=2)
    return json_answer(body.encode(), headers=download_headers(name))


@router.post(
    "/runs/{run_id}/gradings/jobbench", operation_id="import_jobbench", response_model=Grading, status_code=201
)
async def import_jobbench(
    run_id: str, body: JobbenchImport, request: Request, caller: GradingsWrite, state: State
) -> Response:
    """Take a verdict of JobBench's harness on what the run delivered as a grading (``method_version`` ``imported``).

    The file must agree with itself and with the task's rubrics. Takes an ``Idempotency-Key``.
    """
    async with state.db.reading() as tx:
        digest = await jobbench.rubrics_of(tx, caller.project_id, run_id)
    rubrics = await asyncio.to_thread(jobbench.read_rubrics, state.blobs, digest)
    file = await asyncio.to_thread(result_file.read, body.result, rubrics)

    async def work(tx: Tx) -> Made:
        row = await jobbench.imported(tx, caller.project_id, run_id, file, primary=body.primary)
        return Made(view(row, caller), 201, f"/v1/gradings/{row.id}")

    return await once(request, state, caller, f"POST /v1/runs/{run_id}/gradings/jobbench", work)

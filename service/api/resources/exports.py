"""``/v1/exports``: results as one file that can be handed over, with everything that is needed to compute them again."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.auth import ReportsRead, ReportsWrite, State
from service.api.downloads import download_headers, file_answer
from service.api.idempotency import Made, once
from service.api.json_body import StrictRoute
from service.api.operation_view import Operation, operation_view
from service.api.resources.tasks import HIDDEN_READ
from service.domain.errors import Conflict, Gone, NotFound
from service.domain.handover import OPERATION, ExportRequest, ExportSpec, Profile
from service.domain.operations import OperationState
from service.store import audit, blob_refs, operations
from service.store.database import Tx
from service.store.result_tables.scope import heads

router = APIRouter(prefix="/v1/exports", tags=["reports"], route_class=StrictRoute)


@router.post("", operation_id="create_export", response_model=Operation, status_code=202)
async def create_export(body: ExportRequest, request: Request, caller: ReportsWrite, state: State) -> Response:
    """Make a zip of tables, report, figures, prompts and ``verify.py``; answers with the operation. Takes an ``Idempotency-Key``.

    Profile ``public`` leaves out hidden assets, what private tasks are, names of hosts and users, and agents under embargo. The
    operation fails with ``open_findings`` while the leak scan finds anything that no waiver names.
    """
    hidden = body.profile is not Profile.PUBLIC and caller.may(HIDDEN_READ)
    spec = ExportSpec(**body.model_dump(), author=caller.token.id, hidden=hidden)

    async def work(tx: Tx) -> Made:
        if len(await heads(tx, caller.project_id, body.evaluation_ids)) != len(body.evaluation_ids):
            raise NotFound("not_found")
        row = await operations.create(tx, caller.project_id, OPERATION, spec.model_dump(mode="json"), unit="steps")
        detail = {"evaluations": body.evaluation_ids, "profile": body.profile, "waivers": body.waivers}
        await audit.record(tx, caller.project_id, caller.token.id, "export.create", row.id, detail)
        return Made(operation_view(row), 202, f"/v1/operations/{row.id}")

    return await once(request, state, caller, "POST /v1/exports", work)


@router.get("/{operation_id}/archive.zip", operation_id="get_export", response_class=Response)
async def get_export(operation_id: str, request: Request, caller: ReportsRead, state: State) -> Response:
    """Download the zip that the operation made (ranges work); its ETag is its sha256. 409 ``export_not_ready``.

    What quotes hidden assets is in exports that somebody with ``hidden:read`` made: these need it.
    """
    async with state.db.reading() as tx:
        row = await operations.get(tx, caller.project_id, operation_id)
        if row is None or row.kind != OPERATION:
            raise NotFound("not_found")
        found = await blob_refs.one_owned(tx, blob_refs.EXPORT, operation_id)
    if row.spec.get("hidden"):
        caller.require(HIDDEN_READ)
    if row.state is not OperationState.SUCCEEDED:
        raise Conflict("export_not_ready", f"the operation is {row.state}")
    if found is None:
        raise Gone("export_gone", "the file is not kept any more")
    sha256, size = found
    headers = download_headers(f"{operation_id}.zip", f'"{sha256}"')
    return file_answer(request, state.blobs.open(sha256), size, "application/zip", headers)

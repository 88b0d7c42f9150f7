"""What a remote driver does in its run's sandbox (NEEDS C9): programs and files, each action an event of the run's log."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.auth import RunsDrive, State
from service.api.client_messages import MessageReply, MessageRequest, send_message
from service.api.downloads import FALLBACK_TYPE, download_headers
from service.api.drive_actions import (
    ExecRequest,
    Executed,
    FileList,
    FileWritten,
    exec_call,
    execute,
    list_files,
    read_file,
    write_file,
)
from service.api.driving import Driven, bounded
from service.api.exec_stream import ExecStream
from service.api.json_body import StrictRoute
from service.api.rendering import answer
from service.api.resources.leases import Secret
from service.api.stream_slots import check_slot

router = APIRouter(prefix="/v1/runs", tags=["driving"], route_class=StrictRoute)
_BYTES: dict[str, Any] = {FALLBACK_TYPE: {"schema": {"type": "string", "format": "binary"}}}


@router.post(
    "/{run_id}/exec",
    operation_id="exec_in_run",
    response_model=Executed,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def exec_in_run(
    run_id: str, body: ExecRequest, request: Request, caller: RunsDrive, state: State, secret: Secret
) -> Response:
    """Run a program in the run's sandbox and return what it wrote and how it ended.

    With ``Accept: text/event-stream`` its output comes while it runs: ``event: output`` {stream, text}, at last ``event:
    done`` (the same without the texts) or ``event: error`` (a problem). A program that fails is no error of the call.
    """
    driven = Driven(state, caller, run_id, secret)
    if "text/event-stream" not in request.headers.get("accept", ""):
        return answer(await execute(driven, body))
    exec_call(body, "checked")
    async with state.db.transaction() as tx:  # what can be refused is, before the stream begins
        await driven.hold(tx)
    check_slot(state, caller.token.id)
    return ExecStream(driven, body)


@router.get("/{run_id}/files", operation_id="list_run_files", response_model=FileList)
async def list_run_files(
    run_id: str,
    caller: RunsDrive,
    state: State,
    secret: Secret,
    path: Annotated[str, Query(max_length=1024)] = "",
) -> Response:
    """List one folder below the workspace (at most 1 000 entries); no ``path``: the workspace itself."""
    return answer(await list_files(Driven(state, caller, run_id, secret), path))


@router.get(
    "/{run_id}/files/{path:path}",
    operation_id="read_run_file",
    response_class=Response,
    responses={200: {"content": _BYTES}},
)
async def read_run_file(run_id: str, path: str, caller: RunsDrive, state: State, secret: Secret) -> Response:
    """Read a regular file below the workspace, up to 64 MiB; links are not followed."""
    data = await read_file(Driven(state, caller, run_id, secret), path)
    headers = download_headers(path.rpartition("/")[2], f'"{hashlib.sha256(data).hexdigest()}"')
    return Response(data, headers={**headers, "Cache-Control": "no-store"}, media_type=FALLBACK_TYPE)


@router.put(
    "/{run_id}/files/{path:path}",
    operation_id="write_run_file",
    response_model=FileWritten,
    openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
)
async def write_run_file(
    run_id: str,
    path: str,
    request: Request,
    caller: RunsDrive,
    state: State,
    secret: Secret,
    executable: Annotated[bool, Query()] = False,
) -> Response:
    """Write a file below the workspace, up to 64 MiB; parents are made, and it appears whole or not at all."""
    driven = Driven(state, caller, run_id, secret)
    async with state.db.transaction() as tx:  # before a body is read that nobody may write
        await driven.hold(tx)

    async def work() -> FileWritten:
        return await write_file(driven, path, await request.body(), executable=executable)

    return answer(await bounded(state, work))


@router.post("/{run_id}/messages", operation_id="message_client", response_model=MessageReply)
async def message_client(
    run_id: str, body: MessageRequest, caller: RunsDrive, state: State, secret: Secret
) -> Response:
    """Ask the task's simulated client, as often as the task allows (``client_messages`` of the assignment).

    404 ``no_client``; 409 ``no_messages_left``, ``not_for_people``; 503 ``client_unavailable``: its model's provider fails,
    nothing is counted, and the attempt ends as ``provider_unavailable`` unless it comes back.
    """
    return answer(await send_message(Driven(state, caller, run_id, secret), body))

"""``POST /login`` and ``/logout``: a token becomes a browser's session cookie, valid 12 h or as long as its token."""

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.responses import RedirectResponse, Response

from service.api.auth import State, check_origin
from service.api.charging import check_failures, note_failure
from service.api.cookies import clear_session, session_secret, set_session
from service.api.json_body import StrictRoute
from service.api.json_body import parse as parse_json
from service.api.problems import BodyRefused
from service.api.state import ApiState
from service.domain.errors import Unauthenticated
from service.store import tokens

router = APIRouter(tags=["sessions"], route_class=StrictRoute)
FORM = "application/x-www-form-urlencoded"


class LoginRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    token: str


@router.post(
    "/login",
    operation_id="log_in",
    status_code=204,
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": LoginRequest.model_json_schema()}}},
    },
)
async def log_in(request: Request, state: State) -> Response:
    """Open a session. JSON answers 204 or 401; a form is sent on to the pages, or back with what was wrong."""
    check_origin(request, state)
    form = request.headers.get("content-type", "").startswith(FORM)
    body = await request.body()
    secret = _from_form(body) if form else _from_json(body)
    check_failures(request, state, b"")
    session = await _open(state, secret)
    if session is None:
        note_failure(request, state)
        if form:
            return RedirectResponse("/login?failed=1", 303)
        raise Unauthenticated("bad_credentials", "the token is unknown, expired or revoked")
    response = RedirectResponse("/", 303) if form else Response(status_code=204)
    set_session(response, state.config, session)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.post("/logout", operation_id="log_out", status_code=303)
async def log_out(request: Request, state: State) -> Response:
    """Close the session of the cookie."""
    check_origin(request, state)
    secret = session_secret(request)
    if secret is not None:
        async with state.db.transaction() as tx:
            await tokens.close_session(tx, secret)
    response = RedirectResponse("/login", 303)
    clear_session(response, state.config)
    return response


def _from_json(body: bytes) -> str:
    try:
        return LoginRequest.model_validate(parse_json(body)).token
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from error
    except ValueError as error:
        raise BodyRefused(422, "json_invalid", "the body is not JSON") from error


def _from_form(body: bytes) -> str:
    fields = parse_qs(body.decode("latin-1"), max_num_fields=8)
    return fields.get("token", [""])[0].strip()


async def _open(state: ApiState, secret: str) -> str | None:
    async with state.db.transaction() as tx:
        token = await tokens.authenticate(tx, secret)
        if token is None or token.kind == "run":
            return None
        return await tokens.open_session(tx, token.id)

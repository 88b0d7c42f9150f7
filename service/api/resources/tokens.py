"""``/v1/tokens``: create (the secret is shown once), list, revoke."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.auth import SCOPES, Admin, State
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer, now
from service.domain.errors import Invalid, NotFound
from service.store import audit, tokens
from service.store.rows import TokenRow

router = APIRouter(prefix="/v1/tokens", tags=["tokens"], route_class=StrictRoute)


class TokenRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    scopes: Annotated[list[str], Field(min_length=1, max_length=64)]
    note: str = Field(default="", max_length=200)
    expires_at: AwareDatetime | None = None


class Token(View):
    id: str
    prefix: str
    kind: str
    scopes: list[str]
    note: str
    run_id: str | None
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None
    last_used_at: Timestamp | None


class NewToken(Token):
    secret: str
    """Shown in this answer only; stored as a hash."""


class TokenQuery(ListQuery):
    note: Values = ()


def _fields(row: TokenRow) -> dict[str, str | list[str] | datetime | None]:
    return {
        "id": row.id,
        "prefix": row.prefix,
        "kind": row.kind,
        "scopes": list(row.scopes),
        "note": row.note,
        "run_id": row.run_id,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
        "last_used_at": row.last_used_at,
    }


@router.post("", operation_id="create_token", response_model=NewToken, status_code=201)
async def create_token(body: TokenRequest, caller: Admin, state: State) -> Response:
    """Make a token of the caller's project."""
    unknown = sorted(set(body.scopes) - SCOPES)
    if unknown:
        raise Invalid("unknown_scope", f"no such scope: {unknown[0]}", known=sorted(SCOPES))
    if body.expires_at is not None and body.expires_at <= now():
        raise Invalid("expired_already", "expires_at lies in the past")
    async with state.db.transaction() as tx:
        row, secret = await tokens.mint(tx, caller.project_id, sorted(set(body.scopes)), body.note, body.expires_at)
        await audit.record(tx, caller.project_id, caller.token.id, "token.create", row.id, {"scopes": list(row.scopes)})
    return answer(NewToken.model_validate(_fields(row) | {"secret": secret}), 201)


@router.get("", operation_id="list_tokens", response_model=ListOf[Token], responses=UNCHANGED)
async def list_tokens(
    request: Request, caller: Admin, state: State, page: Paging, query: Annotated[TokenQuery, Query()]
) -> Response:
    """List the tokens of the project, without secrets. Sort: created_at."""
    listed = source(request, tokens.LISTING, caller.project_id, query, page, note=query.note)
    names = chosen(query.fields, Token)
    return await answer_list(
        request, state, listed, lambda row: Token.model_validate(_fields(row)), names=names, total=query.total
    )


@router.delete("/{token_id}", operation_id="revoke_token", status_code=204)
async def revoke_token(token_id: str, caller: Admin, state: State) -> Response:
    """Revoke a token and its sessions; its open streams end within 5 s. Repeating it changes nothing."""
    async with state.db.transaction() as tx:
        if not await tokens.revoke(tx, caller.project_id, token_id):
            raise NotFound("not_found")
        await audit.record(tx, caller.project_id, caller.token.id, "token.revoke", token_id, {})
    return Response(status_code=204)

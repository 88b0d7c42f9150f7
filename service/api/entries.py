"""What ``/v1/models`` and ``/v1/services`` share: entries of the project that an operator's token brings, and their keys."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from service.api.auth import Caller
from service.api.conditional import none_match, revision_tag
from service.api.credential_view import NewCredential, put_credential, read_credential, remove_credential
from service.api.rendering import answer
from service.api.state import ApiState
from service.api.upstreams import check_upstream, may_be_private
from service.domain.errors import NotFound
from service.domain.models import ModelSpec
from service.domain.services import ServiceSpec
from service.store import audit
from service.store.database import Tx
from service.store.entries import Entry

S = TypeVar("S", ModelSpec, ServiceSpec)
R = TypeVar("R", bound=Entry[Any])
S_contra = TypeVar("S_contra", ModelSpec, ServiceSpec, contravariant=True)
R_co = TypeVar("R_co", bound=Entry[Any], covariant=True)
Delete = Callable[[Tx, str, str], Awaitable[bool]]


class Replace(Protocol[S_contra, R_co]):
    async def __call__(
        self, tx: Tx, project_id: str, entry_id: str, spec: S_contra, /, *, private: bool
    ) -> R_co | None: ...


class Create(Protocol[S_contra, R_co]):
    async def __call__(self, tx: Tx, project_id: str, spec: S_contra, /, *, private: bool) -> tuple[R_co, bool]: ...


@dataclass(frozen=True)
class Resource(Generic[S, R]):
    """One kind. ``noun`` names it in the audit log, and with an s in its address."""

    noun: str
    view: Callable[[R], BaseModel]
    create_row: Create[S, R]
    get_row: Callable[[Tx, str, str], Awaitable[R | None]]
    replace_row: Replace[S, R]
    delete_row: Delete

    async def create(self, state: ApiState, caller: Caller, body: S) -> Response:
        private = await self._private(state, caller, body)
        async with state.db.transaction() as tx:
            row, created = await self.create_row(tx, caller.project_id, body, private=private)
            if created:
                await self._record(tx, caller, "create", row.id, body)
        return self._answer(row, 201 if created else 200)

    async def get(self, state: ApiState, caller: Caller, entry_id: str, request: Request) -> Response:
        async with state.db.reading() as tx:
            row = await self.load(tx, caller, entry_id)
        tag = revision_tag(row.revision)
        if none_match(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers={"ETag": tag})
        return self._answer(row)

    async def replace(self, state: ApiState, caller: Caller, entry_id: str, body: S) -> Response:
        private = await self._private(state, caller, body)
        async with state.db.transaction() as tx:
            row = await self.replace_row(tx, caller.project_id, entry_id, body, private=private)
            if row is None:
                raise NotFound("not_found")
            await self._record(tx, caller, "replace", row.id, body)
        return self._answer(row)

    async def delete(self, state: ApiState, caller: Caller, entry_id: str) -> Response:
        async with state.db.transaction() as tx:
            if not await self.delete_row(tx, caller.project_id, entry_id):
                raise NotFound("not_found")
            await self._record(tx, caller, "delete", entry_id, None)
        return Response(status_code=204)

    async def put_credential(self, state: ApiState, caller: Caller, entry_id: str, body: NewCredential) -> Response:
        async with state.db.transaction() as tx:
            return answer(await put_credential(tx, caller, self.noun, entry_id, body))

    async def credential(self, state: ApiState, caller: Caller, entry_id: str) -> Response:
        async with state.db.reading() as tx:
            row = await self.load(tx, caller, entry_id)
            return answer(await read_credential(tx, caller, row.credential_id))

    async def remove_credential(self, state: ApiState, caller: Caller, entry_id: str) -> Response:
        async with state.db.transaction() as tx:
            await remove_credential(tx, caller, self.noun, entry_id)
        return Response(status_code=204)

    async def load(self, tx: Tx, caller: Caller, entry_id: str) -> R:
        """Raises NotFound."""
        row = await self.get_row(tx, caller.project_id, entry_id)
        if row is None:
            raise NotFound("not_found")
        return row

    async def _private(self, state: ApiState, caller: Caller, body: S) -> bool:
        private = await may_be_private(state, caller)
        check_upstream(body.base_url, body.headers, private=private)
        return private

    async def _record(self, tx: Tx, caller: Caller, action: str, entry_id: str, body: S | None) -> None:
        detail = {} if body is None else {"name": body.name, "base_url": body.base_url}
        await audit.record(tx, caller.project_id, caller.token.id, f"{self.noun}.{action}", entry_id, detail)

    def _answer(self, row: R, status: int = 200) -> Response:
        headers = {"ETag": revision_tag(row.revision), "Location": f"/v1/{self.noun}s/{row.id}"}
        return answer(self.view(row), status, headers)

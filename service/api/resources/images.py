"""``/v1/images``: environments and kits that a project brings, by upload or from a registry (NEEDS C2)."""

from typing import Annotated, Any, Self

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from starlette.responses import Response

from service.api.auth import AgentsRead, AgentsWrite, Caller, State
from service.api.conditional import none_match, revision_tag
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Values, answer_list, chosen, source
from service.api.pagination import ListOf, Paging
from service.api.rendering import Timestamp, View, answer
from service.api.upstreams import check_upstream, may_be_private
from service.domain.credentials import Purpose
from service.domain.errors import Invalid, NotFound
from service.domain.images import ImageName, ImageState, Reference
from service.domain.operations import ENDED_OPERATIONS
from service.domain.tasks import Sha256
from service.lifecycle.operations.image_import.handler import KIND
from service.store import audit, blob_refs, credentials, images, operations
from service.store.database import Tx
from service.store.rows_models import ImageRow

router = APIRouter(prefix="/v1/images", tags=["images"], route_class=StrictRoute)


class NewImage(BaseModel):
    """One of ``archive`` and ``reference``."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: ImageName
    """How tasks (``environment``) and scaffolds (``kit``) may call it, beside its id."""
    archive: Sha256 | None = None
    """A blob that was uploaded: what ``docker save`` or an OCI tool wrote, perhaps compressed."""
    reference: Annotated[str, Field(max_length=500)] | None = None
    """``host[:port]/name@sha256:digest`` in a registry; a tag may move and is not taken."""
    username: Annotated[str, Field(pattern=r"^[!-9;-~]{1,200}$")] | None = None
    secret: SecretStr | None = Field(default=None, min_length=1, max_length=8000)
    """Of the registry: password or token. Sealed at once, never given back, and forgotten when the import ends."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.archive is None) == (self.reference is None):
            raise ValueError("give either archive or reference")
        if self.reference is None and (self.username or self.secret):
            raise ValueError("username and secret are a registry's")
        if (self.username is None) != (self.secret is None):
            raise ValueError("username and secret come together")
        if self.secret is not None and not all("!" <= c <= "~" for c in self.secret.get_secret_value()):
            raise ValueError("a secret is visible ASCII without spaces")
        return self


class Image(View):
    id: str
    revision: int
    name: str
    reference: str | None
    """Where it came from; null: it was uploaded."""
    archive: str | None
    state: str
    """pending | ready | refused"""
    report: dict[str, Any]
    """What was found: ``platform``, ``size_bytes``, ``layers``, ``user``, ``entrypoint``, ``command``, ``volumes``,
    ``env_names``, ``label_names``, ``files``, ``privileged`` (setuid and the like), ``image_id``; ``overridden`` says, line by
    line, what of it sandboxes do not heed; ``refused`` why it was not taken: {type, detail}. Empty while pending."""
    has_credential: bool
    operation_id: str | None
    """The operation that imports it."""
    created_at: Timestamp


class ImageQuery(ListQuery):
    name: Values = ()
    state: Values = ()


def _view(row: ImageRow) -> Image:
    return Image(
        id=row.id,
        revision=row.revision,
        name=row.name,
        reference=row.reference,
        archive=row.archive,
        state=row.state,
        report=row.report,
        has_credential=row.credential_id is not None,
        operation_id=row.operation_id,
        created_at=row.created_at,
    )


@router.post("", operation_id="create_image", response_model=Image, status_code=201)
async def create_image(body: NewImage, caller: AgentsWrite, state: State) -> Response:
    """Bring an image. Its operation looks at it, keeps it, and hosts load it; wait for ``operation_id``.

    The same again answers 200; where its import failed for want of a registry or gateway, it is begun anew. Another one
    under the same name is 409 ``image_exists``.
    """
    private = await may_be_private(state, caller)
    if body.reference is not None:
        check_upstream(f"https://{Reference.of(body.reference).host}", {}, private=private)
    async with state.db.transaction() as tx:
        size = await _archive_size(tx, caller, body.archive)
        row, created = await images.create(
            tx, caller.project_id, body.name, reference=body.reference, archive=body.archive, private=private
        )
        if row.state is ImageState.PENDING:
            row = await _import(tx, caller, row, body, size)
        if created:
            detail = {"name": row.name, "reference": row.reference, "archive": row.archive}
            await audit.record(tx, caller.project_id, caller.token.id, "image.create", row.id, detail)
    headers = {"ETag": revision_tag(row.revision), "Location": f"/v1/images/{row.id}"}
    return answer(_view(row), 201 if created else 200, headers)


@router.get("", operation_id="list_images", response_model=ListOf[Image], responses=UNCHANGED)
async def list_images(
    request: Request, caller: AgentsRead, state: State, page: Paging, query: Annotated[ImageQuery, Query()]
) -> Response:
    """List the project's images. Sorts: created_at, name."""
    listed = source(
        request, images.LISTING, caller.project_id, query, page, name=query.name, state=query.state
    )  # fmt: skip
    return await answer_list(request, state, listed, _view, names=chosen(query.fields, Image), total=query.total)


@router.get("/{image_id}", operation_id="get_image", response_model=Image, responses=UNCHANGED)
async def get_image(image_id: str, request: Request, caller: AgentsRead, state: State) -> Response:
    """Return an image; the ETag is its revision."""
    async with state.db.reading() as tx:
        row = await images.get(tx, caller.project_id, image_id)
    if row is None:
        raise NotFound("not_found")
    tag = revision_tag(row.revision)
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return answer(_view(row), headers={"ETag": tag})


@router.delete("/{image_id}", operation_id="delete_image", status_code=204)
async def delete_image(image_id: str, caller: AgentsWrite, state: State) -> Response:
    """Delete an image; hosts remove it. 409 ``image_in_use`` while a run that needs it is not done."""
    async with state.db.transaction() as tx:
        if not await images.delete(tx, caller.project_id, image_id):
            raise NotFound("not_found")
        await audit.record(tx, caller.project_id, caller.token.id, "image.delete", image_id, {})
    return Response(status_code=204)


async def _archive_size(tx: Tx, caller: Caller, archive: str | None) -> int:
    """Raises Invalid ``missing_blobs``."""
    if archive is None:
        return 0
    sizes = await blob_refs.project_sizes(tx, caller.project_id, [archive], hold=True)
    if archive not in sizes:
        raise Invalid("missing_blobs", "the archive is not uploaded", missing=[archive])
    return sizes[archive]


async def _import(tx: Tx, caller: Caller, row: ImageRow, body: NewImage, size: int) -> ImageRow:
    """Begin the import, unless one is under way."""
    if row.operation_id is not None:
        before = await operations.get(tx, caller.project_id, row.operation_id)
        if before is not None and before.state not in ENDED_OPERATIONS:
            return row
    if body.secret is not None:
        secret = f"{body.username}:{body.secret.get_secret_value()}"
        await credentials.put(tx, "image", caller.project_id, row.id, Purpose.REGISTRY, secret)
    operation = await operations.create(tx, caller.project_id, KIND, {"image_id": row.id}, "bytes")
    if row.archive is not None:
        await blob_refs.add_refs(tx, caller.project_id, operations.OWNER, operation.id, [(row.archive, size)])
    return await images.imported_by(tx, row.id, operation.id)

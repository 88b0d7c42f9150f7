"""``/v1/benchmarks``: sets of tasks that an importer read on the client, made here by digest."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from service.api.auth import BenchmarksRead, BenchmarksWrite, State
from service.api.benchmark_card import MOST_FORMATS, Card, card_of
from service.api.benchmark_import import import_manifest, import_uploaded
from service.api.benchmark_view import Benchmark, ChecksRequest, Item, benchmark_view, item_view
from service.api.conditional import none_match, revision_tag
from service.api.derivation_view import Derivation, derivation_view
from service.api.json_body import StrictRoute
from service.api.listing import UNCHANGED, ListQuery, Source, Values, answer_list, chosen, source
from service.api.lookups import benchmark_or_404
from service.api.operation_view import Operation
from service.api.pagination import ListOf, Paging, next_link
from service.api.prefixed import only_known, prefixed
from service.api.rendering import answer
from service.domain.benchmarks import ItemStatus
from service.domain.derivations import DeriveRequest
from service.domain.errors import Conflict, Invalid
from service.domain.tasks import LABELS, Sha256, canonical_digest
from service.lifecycle.benchmark_deriving import derive
from service.store import audit, benchmark_cards, benchmarks, overlays
from service.store.benchmarks import Counted, ItemFilter
from service.store.database import Tx
from service.store.rows import Slice

router = APIRouter(prefix="/v1/benchmarks", tags=["benchmarks"], route_class=StrictRoute)


class BenchmarkRequest(BaseModel):
    """One of both."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    manifest: dict[str, Any] | None = None
    """As ``benchmark_manifest.schema.json`` says; for small ones."""
    manifest_sha256: Sha256 | None = None
    """A manifest (JSON, at most 256 MiB) that was uploaded as a blob."""


class BenchmarkQuery(ListQuery):
    name: Values = ()
    version: Values = ()


class BenchmarkPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    labels: LABELS


@router.post(
    "",
    operation_id="create_benchmark",
    response_model=Benchmark,
    status_code=201,
    responses={200: {"model": Benchmark, "description": "it was there"}, 202: {"model": Operation}},
)
async def create_benchmark(body: BenchmarkRequest, caller: BenchmarksWrite, state: State) -> Response:
    """Make a benchmark from a manifest; its tasks' files are uploaded already (422 ``missing_blobs`` lists the others).

    An item never stops the others: one whose task is refused is quarantined with the reason. The same manifest again
    answers 200 with the benchmark that exists; the same name and version with another content, 409
    ``benchmark_version_taken``. What takes longer than 2 s answers 202 with the operation that goes on
    (``Location``); it is the same one for the same ``manifest_sha256``.
    """
    if (body.manifest is None) == (body.manifest_sha256 is None):
        raise Invalid("one_manifest", "give either manifest or manifest_sha256")
    if body.manifest_sha256 is not None:
        return await import_uploaded(state, caller, body.manifest_sha256)
    return await import_manifest(state, caller, body.manifest)


@router.get("", operation_id="list_benchmarks", response_model=ListOf[Benchmark], responses=UNCHANGED)
async def list_benchmarks(
    request: Request, caller: BenchmarksRead, state: State, page: Paging, query: Annotated[BenchmarkQuery, Query()]
) -> Response:
    """List benchmarks. Also takes ``label.<name>=<value>``. Sorts: created_at, name."""
    values = {"name": query.name, "version": query.version}
    listed = source(request, benchmarks.LISTING, caller.project_id, query, page, **values)

    async def counted(tx: Tx) -> Slice[Counted]:
        return await benchmarks.with_counts(tx, await listed.page(tx))

    names = chosen(query.fields, Benchmark)
    whole = Source(listed.fingerprint, counted, listed.count)
    return await answer_list(request, state, whole, lambda of: benchmark_view(*of), names=names, total=query.total)


@router.get(
    "/{benchmark_id}",
    operation_id="get_benchmark",
    response_model=Benchmark,
    responses={304: {"description": "unchanged"}},
)
async def get_benchmark(benchmark_id: str, request: Request, caller: BenchmarksRead, state: State) -> Response:
    """Return a benchmark; the ETag is its revision."""
    async with state.db.reading() as tx:
        row = await benchmark_or_404(tx, caller, benchmark_id)
        counts = await benchmarks.counts(tx, [row.id])
    tag = revision_tag(row.revision)
    if none_match(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"})
    return answer(benchmark_view(row, counts[row.id]), headers={"ETag": tag})


@router.get(
    "/{benchmark_id}/card",
    operation_id="get_benchmark_card",
    response_model=Card,
    responses={304: {"description": "unchanged"}},
)
async def get_card(benchmark_id: str, request: Request, caller: BenchmarksRead, state: State) -> Response:
    """Say what a benchmark is made of: counts, facets, file formats, prices, human time, accepted annotations."""
    async with state.db.reading() as tx:
        row = await benchmark_or_404(tx, caller, benchmark_id)
        laid = await overlays.of_benchmark(tx, caller.project_id, row.id)
        tag = f'"{row.revision}-{canonical_digest(sorted(laid))[:16]}"'
        if none_match(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"})
        counts = await benchmarks.counts(tx, [row.id])
        worths = await benchmark_cards.worths(tx, row.id)
        formats = await benchmark_cards.formats(tx, row.id, MOST_FORMATS)
    return answer(card_of(row, counts[row.id], laid, worths, formats), headers={"ETag": tag})


@router.get("/{benchmark_id}/items", operation_id="list_benchmark_items", response_model=ListOf[Item])
async def list_items(
    benchmark_id: str,
    request: Request,
    caller: BenchmarksRead,
    state: State,
    page: Paging,
    status: Annotated[list[ItemStatus], Query(max_length=8, default_factory=list)],
    item: Annotated[str | None, Query(max_length=300)] = None,
    check: Literal["ok", "suspect", "broken"] | None = None,
) -> Response:
    """List the items in their order. Filters: ``status``, ``item`` (its key, a pattern with * and ?), ``check``, ``facet.<name>``."""
    only_known(request, ("status", "item", "check", "limit", "cursor"), ("facet.",))
    where = ItemFilter(statuses=status, key=item, facets=prefixed(request, "facet."), check=check)
    async with state.db.reading() as tx:
        await benchmark_or_404(tx, caller, benchmark_id)
        found = await benchmarks.list_items(tx, benchmark_id, page, where)
    return answer(ListOf[Item](data=[item_view(r) for r in found.items], next=next_link(request, found.next)))


@router.patch("/{benchmark_id}", operation_id="label_benchmark", response_model=Benchmark)
async def label_benchmark(benchmark_id: str, body: BenchmarkPatch, caller: BenchmarksWrite, state: State) -> Response:
    """Replace the labels."""
    async with state.db.transaction() as tx:
        await benchmark_or_404(tx, caller, benchmark_id, lock=True)
        await benchmarks.set_labels(tx, benchmark_id, body.labels)
        row = await benchmark_or_404(tx, caller, benchmark_id)
        counts = await benchmarks.counts(tx, [row.id])
    return answer(benchmark_view(row, counts[row.id]), headers={"ETag": revision_tag(row.revision)})


@router.post("/{benchmark_id}/checks", operation_id="check_benchmark", response_model=Benchmark)
async def check_benchmark(benchmark_id: str, body: ChecksRequest, caller: BenchmarksWrite, state: State) -> Response:
    """Keep what ``benchmarks check`` found, item by item; a later finding replaces an item's earlier one."""
    found = {key: check.model_dump(mode="json") for key, check in body.items.items()}
    async with state.db.transaction() as tx:
        await benchmark_or_404(tx, caller, benchmark_id, lock=True)
        await benchmarks.set_checks(tx, benchmark_id, found)
        row = await benchmark_or_404(tx, caller, benchmark_id)
        counts = await benchmarks.counts(tx, [row.id])
    return answer(benchmark_view(row, counts[row.id]), headers={"ETag": revision_tag(row.revision)})


@router.post(
    "/{benchmark_id}/derive",
    operation_id="derive_benchmark",
    response_model=Derivation,
    status_code=201,
    responses={200: {"model": Derivation, "description": "it was there, or nothing was to be made"}},
)
async def derive_benchmark(benchmark_id: str, body: DeriveRequest, caller: BenchmarksWrite, state: State) -> Response:
    """Make a benchmark of those items that a rule chooses; the rule, the parent and its digest are kept with it.

    The same rule on the same benchmark chooses the same items. ``dry_run`` counts only. 404 ``overlay_not_found``; 409
    ``benchmark_version_taken``; 422 ``no_items``, ``too_many_strata``.
    """
    async with state.db.transaction() as tx:
        found = await derive(tx, await benchmark_or_404(tx, caller, benchmark_id), body)
        made = None
        if found.row is not None:
            made = benchmark_view(found.row, (await benchmarks.counts(tx, [found.row.id]))[found.row.id])
        if found.created and made is not None:
            detail = {"parent": benchmark_id, "digest": found.digest}
            await audit.record(tx, caller.project_id, caller.token.id, "benchmark.derive", made.id, detail)
    headers = {} if made is None else {"Location": f"/v1/benchmarks/{made.id}", "ETag": revision_tag(made.revision)}
    return answer(derivation_view(found, made), 201 if found.created else 200, headers)


@router.delete("/{benchmark_id}", operation_id="delete_benchmark", status_code=204)
async def delete_benchmark(benchmark_id: str, caller: BenchmarksWrite, state: State) -> Response:
    """Forget a benchmark and what was found of its items. Its tasks stay, and so do their runs and verdicts.

    409 ``benchmark_in_use`` while a run of one of its tasks is not done.
    """
    async with state.db.transaction() as tx:
        row = await benchmark_or_404(tx, caller, benchmark_id, lock=True)
        if await benchmarks.is_in_use(tx, benchmark_id):
            raise Conflict("benchmark_in_use", "a run of one of its tasks is not done")
        await benchmarks.delete(tx, benchmark_id)
        detail = {"name": row.name, "version": row.version, "digest": row.digest}
        await audit.record(tx, caller.project_id, caller.token.id, "benchmark.delete", benchmark_id, detail)
    return Response(status_code=204)

"""Operation ``export``: results as one zip that a sceptic opens offline, kept until the operation is forgotten (30 days)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, BinaryIO

from service.domain.errors import Conflict
from service.domain.handover import MOST_FINDINGS, ExportSpec
from service.domain.leaks import Finding
from service.lifecycle.handover import prompts
from service.lifecycle.handover.profiles import Profiled, profiled
from service.lifecycle.handover.writing import Handed, write_export
from service.lifecycle.operations.contract import Job, OperationContext
from service.lifecycle.results.building import read, report_of
from service.reporting.frames import Tables
from service.store import blob_refs
from service.store.clock import now
from service.store.database import Tx
from service.store.result_tables.people import rater_names
from service.store.result_tables.reading import QUERIES
from service.store.result_tables.scope import EvaluationHead

_STEPS = 4
_CHUNK = 1 << 20


async def run(ctx: OperationContext, job: Job) -> dict[str, Any]:
    """Return {sha256, size_bytes, files, profile, waived, evaluations}.

    Raises Conflict ``open_findings`` (with them), ``evaluation_not_started``, NotFound, Invalid, TooLarge ``too_many_rows``;
    JobCancelled.
    """
    spec = ExportSpec.model_validate(job.spec)
    found, tables = await read(
        ctx.db, job.project_id, spec.evaluation_ids, spec.settings, hidden=spec.hidden, names=[*QUERIES]
    )
    await job.report(1, _STEPS)
    people = await ctx.in_transaction(partial(_people, project_id=job.project_id, tables=tables))
    shown = await asyncio.to_thread(profiled, tables, spec, people)
    report = await report_of(found, shown.tables, spec.kind, spec.settings)
    await job.report(2, _STEPS)
    texts = await _prompts(ctx, job.project_id, shown)
    made_at = await ctx.in_transaction(now)
    with ctx.blobs.scratch() as out:
        handed = await asyncio.to_thread(write_export, out, spec, found, shown, report, texts, made_at)
        await job.report(3, _STEPS)
        _check(job, handed)
        sha256, size = await ctx.blobs.put_stream(_chunks(out))
    ctx.crash.reach("export.made")
    await ctx.in_transaction(partial(_keep, project_id=job.project_id, operation_id=job.id, sha256=sha256, size=size))
    return _result(spec, found, handed) | {"sha256": sha256, "size_bytes": size}


def _result(spec: ExportSpec, found: Sequence[EvaluationHead], handed: Handed) -> dict[str, Any]:
    evaluations = [head.id for head in found]
    return {"profile": spec.profile, "files": handed.files, "waived": handed.waived, "evaluations": evaluations}


def _check(job: Job, handed: Handed) -> None:
    """Raise Conflict while anything is open that nobody has waived by name."""
    if not handed.findings:
        return
    for finding in handed.findings[:20]:
        job.say(f"{finding.name} {finding.shown!r} in {', '.join(finding.places)}")
    raise Conflict(
        "open_findings",
        f"the leak scan found {len(handed.findings)} things that may not leave: take them out, or waive each by name",
        findings=[_told(finding) for finding in handed.findings[:MOST_FINDINGS]],
        total=len(handed.findings),
    )


def _told(finding: Finding) -> dict[str, Any]:
    return {"name": finding.name, "kind": finding.kind, "shown": finding.shown, "places": [*finding.places]}


async def _people(tx: Tx, *, project_id: str, tables: Tables) -> set[str]:
    campaigns = tables["ratings"]["campaign_id"].unique().to_list()
    return await rater_names(tx, project_id, campaigns)


async def _prompts(ctx: OperationContext, project_id: str, shown: Profiled) -> dict[str, bytes | None]:
    """Return the templates of agents and judges that the tables name."""
    columns = (("attempts", "prompt_template_sha256"), ("votes", "template_sha256"))
    digests = sorted({str(d) for table, column in columns for d in shown.tables[table][column].drop_nulls().to_list()})
    owned = await ctx.in_transaction(partial(blob_refs.project_has, project_id=project_id, digests=digests))
    return await asyncio.to_thread(prompts.texts, ctx.blobs, digests, owned)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    file.seek(0)
    while data := await asyncio.to_thread(file.read, _CHUNK):
        yield data


async def _keep(tx: Tx, *, project_id: str, operation_id: str, sha256: str, size: int) -> None:
    await blob_refs.add_refs(tx, project_id, blob_refs.EXPORT, operation_id, [(sha256, size)])

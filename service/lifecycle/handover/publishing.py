"""An export becomes a publication: its report and its page are kept beside it, and never change but by what is withdrawn."""

import asyncio
import zipfile
from dataclasses import dataclass
from typing import Any

from service.domain.errors import Conflict, Gone, Invalid, NotFound
from service.domain.handover import OPERATION, Profile
from service.domain.operations import OperationState
from service.domain.publications import PublicationRequest, Withdrawal, Withdrawn, agents_of, as_shown
from service.domain.reports import Report
from service.lifecycle.results.registry import page_maker
from service.store import blob_refs, clock, operations, publications
from service.store.blobs import BlobStore
from service.store.database import Database, Tx
from service.store.publications import PublicationRow
from service.store.rows import OperationRow

REPORT = "report/report.json"
_MOST_BYTES = 64 << 20
"""Of a report."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """Report and page as they are shown: columns of the row, and the blobs that it keeps."""

    columns: dict[str, Any]
    blobs: dict[str, int]


async def publish(
    db: Database, blobs: BlobStore, project_id: str, asked: PublicationRequest, author: str
) -> tuple[PublicationRow, bool]:
    """Return the publication of an export, and whether it was made now: again it is found.

    Raises NotFound ``export_not_found``, Conflict ``export_not_ready``, ``export_not_public``, Gone ``export_gone``.
    """
    async with db.reading() as tx:
        export = await _export(tx, project_id, asked)
        found = await publications.find(tx, project_id, asked.name, export.id)
        file = await blob_refs.one_owned(tx, blob_refs.EXPORT, export.id)
    if found is not None:
        return found, False
    if file is None:
        raise Gone("export_gone", "the export's file is not kept any more")
    text = await asyncio.to_thread(_report_text, blobs, file[0])
    report = Report.model_validate_json(text)
    shown = await _shown(blobs, report)
    values: dict[str, Any] = {
        "name": asked.name, "operation_id": export.id, "public": asked.public, "author": author,
        "profile": str(export.spec["profile"]), "hidden": bool(export.spec.get("hidden")),
        "archive_sha256": file[0], "archive_bytes": file[1], "report_sha256": shown.columns["shown_sha256"],
        "summary": _summary(report), **shown.columns,
    }  # fmt: skip
    async with db.transaction() as tx:
        last = await publications.latest(tx, project_id, asked.name)
        again = await publications.find(tx, project_id, asked.name, export.id)
        if again is not None:
            return again, False
        values["number"] = 1 if last is None else last.number + 1
        return await publications.insert(tx, project_id, values, shown.blobs | {file[0]: file[1]}), True


async def withdraw(
    db: Database, blobs: BlobStore, project_id: str, publication_id: str, asked: Withdrawal, author: str
) -> PublicationRow:
    """Take an agent's row out of what is shown. Again, with another reason, it is Conflict ``withdrawn_already``.

    Raises NotFound, Invalid ``unknown_agent``.
    """
    async with db.reading() as tx:
        row = await _get(tx, project_id, publication_id)
    report = Report.model_validate_json(await asyncio.to_thread(blobs.read_bytes, row.report_sha256, _MOST_BYTES))
    if asked.agent not in agents_of(report):
        raise Invalid("unknown_agent", f"the publication has no row of {asked.agent!r}", agent=asked.agent)
    async with db.transaction() as tx:
        row = await _get(tx, project_id, publication_id, lock=True)
        before = next((one for one in row.withdrawn if one.agent == asked.agent), None)
        if before is not None and before.reason == asked.reason:
            return row
        if before is not None:
            raise Conflict("withdrawn_already", f"{asked.agent!r} is withdrawn with another reason")
        gone = [*row.withdrawn, Withdrawn(**asked.model_dump(), author=author, at=await clock.now(tx))]
    shown = await _shown(blobs, as_shown(report, gone))
    async with db.transaction() as tx:
        now = await _get(tx, project_id, publication_id, lock=True)
        if now.revision != row.revision:
            raise Conflict("publication_changed", "somebody else changed it meanwhile: try again")
        values = {"withdrawn": [one.model_dump(mode="json") for one in gone], **shown.columns}
        return await publications.change(tx, now, values, shown.blobs)


async def _get(tx: Tx, project_id: str, publication_id: str, *, lock: bool = False) -> PublicationRow:
    row = await publications.get(tx, project_id, publication_id, lock=lock)
    if row is None:
        raise NotFound("not_found")
    return row


async def _export(tx: Tx, project_id: str, asked: PublicationRequest) -> OperationRow:
    row = await operations.get(tx, project_id, asked.export)
    if row is None or row.kind != OPERATION:
        raise NotFound("export_not_found", f"no export {asked.export}")
    if row.state is not OperationState.SUCCEEDED:
        raise Conflict("export_not_ready", f"the operation is {row.state}")
    check_public(asked.public, str(row.spec["profile"]))
    return row


def check_public(public: bool, profile: str) -> None:
    """Raise Conflict ``export_not_public`` where anybody would read what was made for few."""
    if public and profile != Profile.PUBLIC:
        raise Conflict("export_not_public", f"the export was made with profile {profile}, not {Profile.PUBLIC}")


def _report_text(blobs: BlobStore, archive: str) -> bytes:
    with blobs.open(archive) as file, zipfile.ZipFile(file) as packed:
        member = packed.getinfo(REPORT)
        if member.file_size > _MOST_BYTES:
            raise Conflict("report_too_large", f"the report has more than {_MOST_BYTES} bytes")
        return packed.read(member)


async def _shown(blobs: BlobStore, report: Report) -> _Shown:
    make = await page_maker()
    page = (await asyncio.to_thread(make, report)).encode()
    text = report.model_dump_json().encode()
    found: dict[str, tuple[str, int]] = {}
    for name, data in (("shown", text), ("page", page)):
        found[name] = await asyncio.to_thread(blobs.store_bytes, data)
    columns = {
        f"{name}_{part}": value
        for name, both in found.items()
        for part, value in zip(("sha256", "bytes"), both, strict=True)
    }
    return _Shown(columns, dict(found.values()))


def _summary(report: Report) -> dict[str, Any]:
    header = report.header
    names = ("title", "benchmark", "plan", "evaluations", "agents", "tasks", "runs", "notice")
    return {"kind": report.kind, **{name: getattr(header, name) for name in names}}

"""All files of an export, in their order: tables, report, figures, prompts, dictionary, verifier, and the manifest at last."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any, BinaryIO

import polars as pl

from service.domain.errors import Invalid
from service.domain.handover import ExportSpec, Profile
from service.domain.leaks import Finding, Scan
from service.domain.reports import Report
from service.lifecycle.handover.bundle import MANIFEST, Bundle
from service.lifecycle.handover.profiles import Profiled
from service.lifecycle.handover.provenance import as_bytes, manifest
from service.lifecycle.handover.verifier import program
from service.reporting.dictionary import TABLES
from service.reporting.frames import Tables
from service.reporting.html import page
from service.reporting.plots import svg
from service.reporting.table_files import csv_bytes
from service.store.result_tables.scope import EvaluationHead

PIECE = 20_000
"""Rows of CSV that are written together."""
README = """# Results of {title}

`report/report.html` opens in any browser, without a network. `tables/` has what its figures rest on; `dictionary.json` says what
each column means. `python verify.py` checks every digest of `manifest.json` and computes the figures of `report/report.json`
again from `tables/*.csv`: standard library only, with numpy it does the intervals too. Profile: {profile}.

{notice}
"""


@dataclass(frozen=True, slots=True)
class Handed:
    files: int
    findings: list[Finding]
    """Open ones: with any, the file must not leave."""
    waived: int


def write_export(
    out: BinaryIO,
    spec: ExportSpec,
    found: Sequence[EvaluationHead],
    shown: Profiled,
    report: Report,
    prompts: Mapping[str, bytes | None],
    made_at: datetime,
) -> Handed:
    """Write the zip. Blocks."""
    scan = Scan(shown.names)
    bundle = Bundle(out, scan)
    title = report.header.title
    notice = report.header.notice
    bundle.add("README.md", [README.format(title=title, profile=spec.profile, notice=notice).encode()])
    _tables(bundle, shown.tables)
    bundle.add("dictionary.json", [as_bytes(_dictionary())])
    bundle.add("report/report.json", [as_bytes(report.model_dump(mode="json"))])
    bundle.add("report/report.html", [page(report).encode()])
    for table in report.tables:
        if table.plot is not None and table.rows:
            _figure(bundle, table)
    places = {digest: None if text is None else f"prompts/{digest}.md" for digest, text in prompts.items()}
    for digest, text in prompts.items():
        if text is not None:
            bundle.add(f"prompts/{digest}.md", [text])
    bundle.add("verify.py", [program()])
    said = manifest(spec, found, shown, report, bundle.files, made_at=made_at, prompts=places)
    bundle.add(MANIFEST, [as_bytes(said)])
    bundle.end()
    findings = scan.findings() if spec.profile is not Profile.INTERNAL else _secrets(scan.findings())
    left = [finding for finding in findings if finding.name not in set(spec.waivers)]
    return Handed(len(bundle.files), left, len(findings) - len(left))


def _secrets(findings: Sequence[Finding]) -> list[Finding]:
    """What must not leave a project even inside the house: keys, tokens, and the names that were asked for."""
    return [finding for finding in findings if finding.kind in ("key", "token", "name")]


def _tables(bundle: Bundle, tables: Tables) -> None:
    for name, frame in tables.items():
        bundle.add(f"tables/{name}.csv", _csv(name, frame))
        packed = BytesIO()
        frame.write_parquet(packed)
        bundle.add(f"tables/{name}.parquet", [packed.getvalue()], text=False)


def _csv(name: str, frame: pl.DataFrame) -> Iterator[bytes]:
    yield csv_bytes(name, frame.head(0))
    for start in range(0, frame.height, PIECE):
        yield csv_bytes(name, frame.slice(start, PIECE), head=False)


def _figure(bundle: Bundle, table: Any) -> None:
    try:
        drawn = svg(table)
    except Invalid:
        return
    bundle.add(f"report/plots/{table.name}.svg", [drawn])


def _dictionary() -> list[dict[str, Any]]:
    return [
        {
            "name": table.name,
            "text": table.text,
            "key": [*table.key],
            "columns": [
                {"name": c.name, "type": c.type, "text": c.text, "null": c.null or None} for c in table.columns
            ],
        }
        for table in TABLES.values()
    ]

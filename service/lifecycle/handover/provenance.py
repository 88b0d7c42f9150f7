"""What an export says of itself: where its figures come from and what is not in it."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from service.domain.handover import ExportSpec, Profile
from service.domain.reports import Report
from service.lifecycle.handover.profiles import Profiled
from service.store.result_tables.scope import EvaluationHead

FORMAT = "workstead-export"
VERSION = 1


def manifest(
    spec: ExportSpec,
    found: Sequence[EvaluationHead],
    shown: Profiled,
    report: Report,
    files: Sequence[Mapping[str, Any]],
    *,
    made_at: datetime,
    prompts: Mapping[str, str | None],
) -> dict[str, Any]:
    """Return the manifest. ``prompts``: digest → file, null where the text is not kept here."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_at": made_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "service_version": _version(),
        "profile": spec.profile,
        "waivers": list(spec.waivers),
        "left_out": dict(shown.left_out),
        "exclusions": dict(sorted(Counter(shown.tables["exclusions"]["exclusion"].to_list()).items())),
        "evaluations": [_evaluation(head, spec) for head in found],
        "models": _models(shown.tables["model_requests"]),
        "prompts": dict(prompts),
        "report": {"kind": report.kind, "settings": report.header.settings.model_dump(mode="json")},
        "files": list(files),
    }


def _evaluation(head: EvaluationHead, spec: ExportSpec) -> dict[str, Any]:
    """What was resolved names every agent and task: a public export has digests of what it shows in its tables alone."""
    benchmark = head.benchmark
    told: dict[str, Any] = {
        "id": head.id,
        "name": head.name,
        "state": head.state,
        "plan": head.plan,
        "seed": head.seed,
        "revision": head.revision,
        "benchmark": None if benchmark is None else f"{benchmark.name}@{benchmark.version}",
        "source": None if benchmark is None else benchmark.source.model_dump(mode="json"),
        "notice": "" if benchmark is None else benchmark.notice,
    }
    return told if spec.profile is Profile.PUBLIC else {**told, "resolved": head.resolved}


def _models(requests: pl.DataFrame) -> list[dict[str, Any]]:
    """Each model with what it called itself, and when it was asked first and last (NEEDS A12, alias drift)."""
    asked = requests.filter(pl.col("model").is_not_null()).group_by("model").agg(
        pl.col("reported_model").drop_nulls().unique().sort().alias("reported"),
        pl.col("created_at").min().alias("first"), pl.col("created_at").max().alias("last"), pl.len().alias("requests"),
    ).sort("model")  # fmt: skip
    return [
        {
            "model": row["model"],
            "reported": row["reported"],
            "first_call": row["first"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "last_call": row["last"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requests": row["requests"],
        }
        for row in asked.iter_rows(named=True)
    ]


def _version() -> str:
    try:
        return version("workstead")
    except PackageNotFoundError:
        return "unknown"


def as_bytes(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()

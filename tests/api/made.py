"""Things that only a process of the service's makes, as it would leave them."""

import hashlib
from typing import Any

from service.domain.ids import new_id
from service.domain.judging import JudgeSpec
from service.domain.probes import Cost, ProbeReport
from service.domain.reports import Report
from service.store import probes, publications
from tests.api.helpers import Tenant

PROBE = ProbeReport(
    judge=JudgeSpec(model="acme/one"), judge_key="k", reported_models=["one"], plan="p/one@1", method="m",
    method_version="1", prompt="p@1", seed=1, runs=[], cost=Cost(requests=0, input_tokens=0, output_tokens=0),
)  # fmt: skip
_HEADER: dict[str, Any] = {
    "title": "Week 48", "benchmark": None, "evaluations": [], "plan": "task@1", "policies": {}, "notice": "", "agents": 0,
    "tasks": 0, "runs": 0, "settings": {},
}  # fmt: skip
REPORT = Report.model_validate({"kind": "overview", "header": _HEADER, "validity": [], "tables": []})


async def a_probe(one: Tenant) -> str:
    """Return the id of a judge's probe."""
    async with one.state.db.transaction() as tx:
        return (await probes.put(tx, one.project_id, new_id("op"), PROBE)).id


async def a_publication(one: Tenant, name: str = "week") -> str:
    """Return the id of a publication that only its project may read."""
    files = {"report": REPORT.model_dump_json().encode(), "page": b"<p>made", "archive": b"PK\5\6" + bytes(18)}
    kept = {name: await one.blob(data) for name, data in files.items()}
    size = {name: len(data) for name, data in files.items()}
    values = {
        "name": name, "number": 1, "operation_id": new_id("op"), "profile": "internal", "hidden": False, "public": False,
        "author": "tok_x", "summary": {"kind": "overview", "title": "Week 48"},
        "archive_sha256": kept["archive"], "archive_bytes": size["archive"], "report_sha256": kept["report"],
        "shown_sha256": kept["report"], "shown_bytes": size["report"], "page_sha256": kept["page"], "page_bytes": size["page"],
    }  # fmt: skip
    blobs = {hashlib.sha256(data).hexdigest(): len(data) for data in files.values()}
    async with one.state.db.transaction() as tx:
        return (await publications.insert(tx, one.project_id, values, blobs)).id

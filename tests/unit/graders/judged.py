"""Deliverables, tasks and judges for tests of methods with judges."""

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from service.domain.artifacts import ArtifactEntry
from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Part
from service.domain.integrity import IntegrityReport
from service.domain.judging import JudgeSpec
from service.domain.tasks import FileRef, GraderSpec, TaskManifest
from service.graders.contract import GraderFault, GradingInput, Question
from service.testing.judges import ScriptedJudges, nonce_of

JUDGE = {"model": "judge-a"}
PNG = b"\x89PNG picture"


def digest(data: bytes | str) -> str:
    return sha256(data if isinstance(data, bytes) else data.encode(errors="replace")).hexdigest()


def delivered(path: str, *texts: str | Part, **fields: Any) -> EvidenceFile:
    parts = tuple(t if isinstance(t, Part) else Part(kind="text", text=t) for t in texts)
    values: dict[str, Any] = {
        "kind": "text",
        "state": "extracted",
        "size_bytes": sum(len(p.text) for p in parts),
        **fields,
    }
    return EvidenceFile(path=path, sha256=digest(path), parts=parts, **values)


def picture(label: str, source: Literal["file", "page", "embedded", "output", "frame"] = "file") -> EvidenceImage:
    data = PNG + label.encode()
    return EvidenceImage(
        label=label,
        source=source,
        sha256=digest(data),
        media_type="image/png",
        width=10,
        height=10,
        size_bytes=len(data),
    )


@dataclass
class Evidence:
    """A document that is there already; pictures are made of their labels."""

    made: EvidenceDocument
    read: list[str] = field(default_factory=list[str])

    async def document(self) -> EvidenceDocument:
        return self.made

    async def image(self, sha256: str) -> bytes:
        self.read.append(sha256)
        for image in (i for f in self.made.files for i in f.images):
            if image.sha256 == sha256:
                return PNG + image.label.encode()
        raise GraderFault("evidence_missing")


@dataclass
class Kept:
    rows: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])

    async def __call__(self, start: int, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows |= dict(enumerate(rows, start))


def task(method: str, hidden: Sequence[str] = (), **settings: Any) -> TaskManifest:
    files = [FileRef(path=path, sha256=digest(path), size_bytes=1) for path in hidden]
    return TaskManifest(
        name="t",
        instruction="Write the quarterly report.",
        hidden=files,
        graders=[GraderSpec(method=method, settings=settings)],
    )


def given(
    settings: Mapping[str, Any],
    files: Sequence[EvidenceFile],
    judges: ScriptedJudges | None,
    hidden: Mapping[str, Any] | None = None,
    **fields: Any,
) -> GradingInput:
    def open_hidden(path: str) -> io.BytesIO:
        if path not in (hidden or {}):
            raise GraderFault("hidden_missing")
        content = (hidden or {})[path]
        return io.BytesIO(content if isinstance(content, bytes) else json.dumps(content).encode())

    document = fields.pop("document", None) or EvidenceDocument(files=tuple(files))
    values: dict[str, Any] = {
        "settings": {"judges": [JUDGE], **settings},
        "entries": [],
        "open_hidden": open_hidden,
        "open_deliverable": _nothing,
        "judges": judges,
        "evidence": Evidence(document),
        "integrity": IntegrityReport(),
        "task": task("x"),
        "seed": "seed",
    }
    return GradingInput(**(values | fields))


def _nothing(entry: ArtifactEntry) -> io.BytesIO:
    return io.BytesIO()


def criteria_of(question: Question) -> list[int]:
    """Return the numbers of a rubric's criteria in the order in which they are put."""
    put = question.system.split("(the order in which they stand here means nothing):\n")[1].split("\n\n")[0]
    return [int(n) for n in re.findall(r"^(\d+)\. ", put, re.MULTILINE)]


def rubric_answer(question: Question, passed: Callable[[int], bool] = lambda _: True, **changes: Any) -> dict[str, Any]:
    """Return the answer to a rubric's question, as an object."""
    results = [
        {"index": n, "reasoning": f"why {n}", "evidence": "report.md", "passed": passed(n)}
        for n in criteria_of(question)
    ]
    said: dict[str, Any] = {
        "nonce": nonce_of(question),
        "criteria_results": results,
        "overall_reasoning": "all in all",
        "rubric_passed": all(r["passed"] for r in results),
    }
    if "A control statement" in question.system:
        said["control"] = {"reasoning": "no such thing", "holds": False}
    return said | changes


def judges_saying(answer: Callable[[Question], Any]) -> ScriptedJudges:
    """Judges that all answer alike; what is not text becomes JSON."""

    def say(judge: JudgeSpec, item: str, n: int, question: Question) -> str:
        said = answer(question)
        return said if isinstance(said, str) else json.dumps(said)

    return ScriptedJudges(say)

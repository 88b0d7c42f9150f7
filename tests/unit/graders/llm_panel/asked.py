"""A deliverable in memory, and judges of it that answer as a test says."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.domain.evidence import EvidenceDocument, EvidenceFile, EvidenceImage, Part
from service.domain.judging import JudgeSpec
from service.domain.tasks import Price, TaskManifest
from service.graders.contract import GradingInput, Question
from service.graders.llm_panel.grader import LlmPanelGrader
from service.testing.judges import ScriptedJudges, nonce_of

SHA = "a" * 64
TASK = TaskManifest(
    name="t",
    instruction="Write a report about bees.",
    price=Price(amount="120.50", currency="EUR", basis="posted"),
)


@dataclass(frozen=True)
class Evidence:
    given: EvidenceDocument
    picture: bytes = b"\x89PNG"

    async def document(self) -> EvidenceDocument:
        return self.given

    async def image(self, sha256: str) -> bytes:
        assert sha256 == SHA
        return self.picture


def document(*texts: str, pictures: int = 0) -> EvidenceDocument:
    image = EvidenceImage(
        label="page 1", source="page", sha256=SHA, media_type="image/png", width=1, height=1, size_bytes=4
    )
    files = [
        EvidenceFile(
            path=f"output/f{n}.md", sha256=SHA, size_bytes=len(text), kind="text", state="extracted",
            parts=(Part(kind="text", text=text),), images=(image,) * pictures,
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    return EvidenceDocument(files=tuple(files))


def given(way: ScriptedJudges | None, evidence: EvidenceDocument, **settings: Any) -> GradingInput:
    extra = settings.pop("extra", {})
    return GradingInput(
        {"judges": [{"model": "m/a"}], **settings}, [], _nothing, lambda _: _nothing(""), task=TASK, judges=way,
        evidence=Evidence(evidence), seed="seed", extra=extra,
    )  # fmt: skip


def _nothing(_: str) -> io.BytesIO:
    raise AssertionError("no file is opened")


def answer(question: Question, pay: bool = True, **changed: Any) -> str:
    """A whole answer; a value of ``...`` leaves its key out."""
    said: dict[str, Any] = {
        "nonce": nonce_of(question), "reasoning": "r", "check": {"reasoning": "r", "holds": False}, "produced": True,
        "on_spec": pay, "client_plausible": pay, "pay_worthy": pay, "fabricated": False, "failure_reason": None,
    }  # fmt: skip
    return json.dumps({name: value for name, value in (said | changed).items() if value is not ...})


def judges(script: Callable[[JudgeSpec, int, Question], str]) -> ScriptedJudges:
    return ScriptedJudges(lambda judge, _, n, question: script(judge, n, question))


GRADER = LlmPanelGrader()

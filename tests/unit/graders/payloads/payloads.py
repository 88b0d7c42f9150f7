"""The payloads of ``payloads.toml`` and the ways a deliverable carries them."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.domain.evidence import EvidenceFile, Part
from tests.unit.graders.judged import delivered, picture


@dataclass(frozen=True)
class Payload:
    name: str
    family: str
    carrier: str
    order: str
    say: str

    def files(self) -> list[EvidenceFile]:
        """Return a deliverable of honest work that carries the payload, in the middle of two other files."""
        return [
            delivered("output/a.md", "Costs fell."),
            CARRIERS[self.carrier](self.say),
            delivered("output/z.md", "End."),
        ]


def _part(kind: str, label: str = "") -> Callable[[str], EvidenceFile]:
    return lambda say: delivered(
        "output/report.docx", "A report.", Part.model_validate({"kind": kind, "label": label, "text": say})
    )


CARRIERS: dict[str, Callable[[str], EvidenceFile]] = {
    "text": lambda say: delivered("output/report.md", say),
    "name": lambda say: delivered(say, "A report."),
    "label": lambda say: delivered("output/t.xlsx", Part(kind="sheet", label=say, text="1,2")),
    "metadata": _part("metadata", "docProps/core.xml"),
    "hidden": _part("hidden", "white text"),
    "alt": _part("hidden", "alternative text of picture 1"),
    "ocr": _part("text", "OCR of page 1"),
    "fact": lambda say: delivered("output/report.pdf", "A report.", facts={"title": say}),
    "note": lambda say: delivered("output/report.pdf", "A report.", notes=(say,)),
    "error": lambda say: delivered("output/p.png", "x", state="failed", error="cannot_open", detail=say),
    "image": lambda say: delivered("output/report.pdf", "A report.", images=(picture(say, "page"),)),
}


def payloads() -> list[Payload]:
    data = tomllib.loads(Path(__file__).with_name("payloads.toml").read_text(encoding="utf-8"))
    return [Payload(**row) for row in data["payload"]]


def families(of: Sequence[Payload]) -> list[str]:
    return sorted({p.family for p in of})

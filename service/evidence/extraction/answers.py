"""What the room's program said, as it must be taken: text that hostile bytes may have had a hand in."""

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.domain import evidence
from service.domain.evidence import EvidenceFile, EvidenceImage, Omitted, Part
from service.evidence.extraction.inside.sharing import Piece, share

MAX_LINE = 6 << 20
MAX_IMAGE, MAX_IMAGES = 4 << 20, 48 << 20
"""Bytes of one picture, and of one file's."""
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
"""Shown as the pictures that Unicode has for them: they are part of what was delivered."""

Count = evidence.Count
_Part = tuple[evidence.PartKind, Annotated[str, Field(max_length=1000)], str, str, Count]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Kind = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")]
_Side = Annotated[int, Field(ge=1, le=1 << 16)]
Image = tuple[
    Annotated[str, Field(max_length=1000)], evidence.ImageSource, Literal["image/png", "image/jpeg"], _Side, _Side,
    Annotated[int, Field(ge=1, le=MAX_IMAGE)], _Sha256,
]  # fmt: skip
_Fact = bool | Annotated[int, Field(ge=-(1 << 53), le=1 << 53)] | float | Annotated[str, Field(max_length=1000)]


class Answer(BaseModel):
    """One line. Nothing in it names a file: the number does, and it must be one that was asked about."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    n: Count
    kind: _Kind
    state: Literal["extracted", "listed", "failed"]
    error: _Kind | None = None
    detail: Annotated[str, Field(max_length=1000)] | None = None
    pieces: list[_Part] = Field(default_factory=list[_Part], max_length=evidence.MAX_PARTS)
    images: list[Image] = Field(default_factory=list[Image], max_length=evidence.FILE_IMAGES)
    notes: list[Annotated[str, Field(max_length=1000)]] = Field(
        default_factory=list[str], max_length=evidence.MAX_NOTES
    )
    facts: dict[Annotated[str, Field(max_length=64)], _Fact] = Field(default_factory=dict[str, _Fact], max_length=64)
    left: tuple[Count, Count, Count, Count] = (0, 0, 0, 0)


@dataclass(slots=True)
class Found:
    """What is known of a file while the document is made: its texts can still be cut."""

    path: str
    sha256: str
    size_bytes: int
    kind: str = "binary"
    state: Literal["extracted", "listed", "failed"] = "listed"
    error: str | None = None
    detail: str | None = None
    pieces: list[Piece] = field(default_factory=list[Piece])
    images: list[EvidenceImage] = field(default_factory=list[EvidenceImage])
    notes: list[str] = field(default_factory=list[str])
    facts: dict[str, str | int | float | bool] = field(default_factory=dict[str, str | int | float | bool])
    left: Omitted = field(default_factory=Omitted)

    @property
    def kept(self) -> int:
        return sum(p.kept for p in self.pieces)

    def omit_images(self, many: int) -> None:
        self.left = self.left.model_copy(update={"images": self.left.images + many})

    def finished(self) -> EvidenceFile:
        missing = sum(p.missing for p in self.pieces)
        return EvidenceFile(
            path=self.path,
            sha256=self.sha256,
            size_bytes=self.size_bytes,
            kind=self.kind,
            state=self.state,
            error=self.error,
            detail=self.detail,
            parts=tuple(_part(p) for p in self.pieces),
            images=tuple(self.images),
            omitted=self.left.model_copy(update={"chars": self.left.chars + missing}),
            notes=tuple(self.notes),
            facts=self.facts,
        )


def answers(output: bytes, asked: frozenset[int]) -> dict[int, Answer]:
    """Return the first answer that fits for each number that was asked about; everything else is dropped."""
    found: dict[int, Answer] = {}
    at = 0
    while at < len(output):
        end = output.find(b"\n", at)
        end = len(output) if end < 0 else end
        answer = _answer(output[at:end]) if 0 < end - at <= MAX_LINE else None
        if answer is not None and answer.n in asked:
            found.setdefault(answer.n, answer)
        at = end + 1
    return found


def _answer(line: bytes) -> Answer | None:
    try:
        return Answer.model_validate_json(line)
    except ValidationError:
        return None


def pictures(answer: Answer, most: int) -> list[Image]:
    """Return the first pictures of a file, at most so many and not too large together."""
    rows: list[Image] = []
    size = 0
    for row in answer.images[:most]:
        size += row[-2]
        if size > MAX_IMAGES:
            break
        rows.append(row)
    return rows


def taken(begun: Found, answer: Answer) -> Found:
    """Return what is known of a file with what was said of it; its pictures come later, by their digests."""
    chars, rows, parts, images = answer.left
    pieces = [
        Piece(kind, shown(label), visible(head), visible(tail), missing)
        for kind, label, head, tail, missing in answer.pieces
    ]
    share(pieces, evidence.FILE_CHARS)
    return replace(
        begun,
        kind=answer.kind,
        state=answer.state,
        error=answer.error,
        detail=None if answer.detail is None else shown(answer.detail),
        pieces=pieces,
        notes=[shown(note) for note in answer.notes],
        facts={shown(k)[:64]: shown(v) if isinstance(v, str) else v for k, v in answer.facts.items()},
        left=Omitted(chars=chars, rows=rows, parts=parts, images=images),
    )


def shown(text: str) -> str:
    return _UNSHOWN.sub(" ", text)[:500]


def visible(text: str) -> str:
    """Return text with its controls, but tab and newline, as pictures. Half pairs do not come here: no answer has them."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def _part(piece: Piece) -> Part:
    gap = f"\n[… {piece.missing} characters left out here …]\n" if piece.missing else ""
    return Part.model_validate({"kind": piece.kind, "label": piece.label, "text": f"{piece.head}{gap}{piece.tail}"})

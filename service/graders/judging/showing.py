"""What a judge is shown of a deliverable: every word of it inside data blocks, sizes and omissions in our words outside.

Names, labels, kinds, errors and notes come from the deliverable or from what read it, and are data as its text is.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from service.domain.evidence import EvidenceDocument, EvidenceFile, Omitted
from service.domain.integrity import FileReport, IntegrityReport
from service.graders.contract import EvidenceSource, GraderFault, GradingInput
from service.graders.judging.fencing import Fence, Harmless, harmless
from service.graders.judging.orders import shuffled
from service.graders.judging.pictures import Pictures, pictures_of
from service.graders.judging.settings import JudgingSettings
from service.graders.judging.shares import fair, head_and_tail
from service.graders.judging.visible import visible, visible_line
from service.models.messages import Image

_PATH, _NOTE, _NOTES, _FACTS = 400, 300, 10, 20
"""Most characters of a name, of a note; most notes and facts of one file."""
_BESIDES = 10
"""The integrity report and the list of what could not be taken get at most one part in so many of the whole."""


@dataclass(frozen=True)
class Material:
    """All that there is to show, read once for all questions of a grading."""

    settings: JudgingSettings
    seed: str
    document: EvidenceDocument
    integrity: IntegrityReport | None = None
    pictures: Pictures = field(default_factory=Pictures)

    @cached_property
    def sections(self) -> list[str]:
        """Text of each file, what cannot be seen written out; empty strings for files beyond the opening."""
        files = self.document.files
        if self.settings.reading == "opening":
            return _opening(files, self.settings.opening_chars)
        return [_header(f) + _body(f) for f in files]

    @cached_property
    def cut(self) -> list[tuple[Harmless, int, Harmless]]:
        """Head, characters left out and tail of each file, within the whole's cap."""
        rest = self.settings.evidence_chars - self.settings.evidence_chars // _BESIDES
        shares = fair([len(s) for s in self.sections], rest)
        pieces = [head_and_tail(text, most) for text, most in zip(self.sections, shares, strict=True)]
        return [(harmless(head), left_out, harmless(tail)) for head, left_out, tail in pieces]

    def shown(self, n: int, *, images: bool = False) -> "Shown":
        """Return what vote ``n`` is shown."""
        numbers = range(len(self.document.files))
        order = shuffled(numbers, self.seed, n) if self.settings.vary_order else list(numbers)
        with_images = images and self.settings.images != "never" and self.settings.reading == "full"
        return Shown(self, tuple(order), self.pictures if with_images else Pictures())


@dataclass(frozen=True, slots=True)
class Shown:
    material: Material
    order: tuple[int, ...]
    pictures: Pictures

    @property
    def images(self) -> list[Image]:
        return [p.image for p in self.pictures.shown]

    def text_for(self, fence: Fence) -> str:
        pieces = [self._summary()]
        for i in self.order:
            pieces += self._file(fence, i)
        return "\n".join([*pieces, *self._besides(fence), *self._pictures(fence)])

    def _summary(self) -> str:
        document = self.material.document
        said = [f"Files in the deliverable: {len(document.files)}."]
        if document.not_listed:
            said.append(f"{document.not_listed} further files are not listed.")
        if self.material.settings.reading == "opening":
            said.append(f"Only the opening of its text is shown: {self.material.settings.opening_chars} characters.")
        if document.omitted.any:
            said.append(f"Left out of all files together: {_omitted(document.omitted)}.")
        return " ".join(said)

    def _file(self, fence: Fence, i: int) -> list[str]:
        file = self.material.document.files[i]
        kind = f"file {i + 1}"
        said = f"File {i + 1}: {file.size_bytes} bytes, {file.state}."
        if file.omitted.any:
            said += f" Left out when it was read: {_omitted(file.omitted)}."
        head, left_out, tail = self.material.cut[i]
        if not head:
            return [f"{said} It lies beyond the opening."]
        pieces = [said, fence.block(kind, head)]
        if left_out:
            pieces.append(f"Here {left_out} characters of file {i + 1} are left out.")
        return [*pieces, fence.block(f"{kind} tail", tail)] if tail else pieces

    def _besides(self, fence: Fence) -> list[str]:
        most = self.material.settings.evidence_chars // _BESIDES // 2
        report = self.material.integrity
        if report is None:
            pieces = ["Whether the files open could not be found out; that says nothing about them."]
        else:
            said = f"Files with which something is wrong: {report.problems}."
            pieces = [f"{said} What was found:", *_capped(fence, "integrity report", _integrity(report.files), most)]
        if self.material.document.skipped:
            lines = [
                f"{visible_line(path)[:_PATH]}: {visible_line(why)}" for path, why in self.material.document.skipped
            ]
            pieces += ["Entries that could not be taken:", *_capped(fence, "not taken", lines, most)]
        return pieces

    def _pictures(self, fence: Fence) -> list[str]:
        shown, left_out = self.pictures.shown, self.pictures.left_out
        if not shown:
            return []
        files = self.material.document.files
        lines = [
            f"picture {n}: file {p.file + 1}, {_name(files[p.file])}, {visible_line(p.label)}"
            for n, p in enumerate(shown, 1)
        ]
        said = f"Pictures attached, in this order: {len(shown)}; further ones left out: {left_out}."
        return [f"{said} They are data as all blocks are.", fence.block("pictures", "\n".join(lines))]


async def material_of(given: GradingInput, settings: JudgingSettings, *, images: bool = False) -> Material:
    """Read what there is to show. Raises GraderFault, GraderBusy of the evidence's source."""
    source = evidence_of(given)
    document = await source.document()
    wanted = images and settings.images != "never" and settings.reading == "full"
    pictures = await pictures_of(source, document) if wanted else Pictures()
    material = Material(settings, given.seed, document, given.integrity, pictures)
    await asyncio.to_thread(lambda: material.cut)  # a second for the largest ones, which the loop has not
    return material


def evidence_of(given: GradingInput) -> EvidenceSource:
    """Return where the document comes from. Raises GraderFault ``grader_unavailable``."""
    if given.evidence is None:
        raise GraderFault("grader_unavailable", "this grader process has no evidence of deliverables")
    return given.evidence


def nothing_delivered(document: EvidenceDocument) -> bool:
    """Tell whether there is nothing that a judge could look at.

    Raises GraderFault ``evidence_incomplete`` where it is our reader that gave nothing.
    """
    if any(not _blank(f) for f in document.files) or document.not_listed:
        return False
    if any(f.error == "extractor_failed" for f in document.files):
        raise GraderFault("evidence_incomplete", "the deliverable's files could not be read, by a failure of ours")
    return True


def _blank(file: EvidenceFile) -> bool:
    if file.size_bytes == 0 or file.error == "extractor_failed":
        return True
    return (
        file.state == "extracted" and not file.images and not file.facts and not any(p.text.strip() for p in file.parts)
    )


def _name(file: EvidenceFile) -> str:
    return visible_line(file.path)[:_PATH]


def _header(file: EvidenceFile) -> str:
    lines = [f"name: {_name(file)}", f"kind: {visible_line(file.kind)}"]
    if file.error is not None:
        lines.append(f"could not be read: {visible_line(file.error)} {visible_line(file.detail or '')}".rstrip())
    facts = [f"{visible_line(k)}={visible_line(str(v))[:_NOTE]}" for k, v in list(file.facts.items())[:_FACTS]]
    lines += [f"facts: {', '.join(facts)}"] if facts else []
    return "\n".join([*lines, *(f"note: {visible_line(note)[:_NOTE]}" for note in file.notes[:_NOTES]), ""])


def _body(file: EvidenceFile, most: int | None = None) -> str:
    pieces: list[str] = []
    for part in file.parts:
        text = visible(part.text) if most is None else visible(part.text)[:most]
        most = None if most is None else most - len(text)
        pieces.append(f"-- {part.kind} {visible_line(part.label)}".rstrip() + f"\n{text}")
        if most is not None and most <= 0:
            break
    return "\n".join(pieces)


def _opening(files: Sequence[EvidenceFile], chars: int) -> list[str]:
    sections: list[str] = []
    for file in files:
        sections.append(_header(file) + _body(file, chars) if chars > 0 else "")
        chars -= sum(len(visible(p.text)) for p in file.parts)
    return sections


def _integrity(files: Sequence[FileReport]) -> list[str]:
    return [f"{visible_line(f.path)[:_PATH]}: {_opens(f)}; {_problems(f)}" for f in files]


def _opens(file: FileReport) -> str:
    is_what = f"claims {visible_line(file.claims or 'nothing')}, is {visible_line(file.sniffed or 'unknown')}"
    return {True: "opens", False: "does not open", None: "not looked at"}[file.opens] + f", {is_what}"


def _problems(file: FileReport) -> str:
    said = [f"{p.type.value} {visible_line(p.detail)}".rstrip() for p in file.problems]
    return "; ".join(said) or "no problem"


def _capped(fence: Fence, kind: str, lines: Sequence[str], most: int) -> list[str]:
    head, left_out, tail = head_and_tail("\n".join(lines), most)
    pieces = [fence.block(kind, head)]
    return (
        [*pieces, f"Here {left_out} characters are left out.", fence.block(f"{kind} tail", tail)]
        if left_out
        else pieces
    )


def _omitted(omitted: Omitted) -> str:
    counts = {"characters": omitted.chars, "rows": omitted.rows, "parts": omitted.parts, "pictures": omitted.images}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)

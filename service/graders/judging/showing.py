"""What a judge is shown of a deliverable: every word of it inside data blocks, sizes and omissions in our words outside.

Names, labels, kinds, errors and notes come from the deliverable or from what read it, and are data as its text is.
"""

import asyncio
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from service.domain.evidence import EvidenceDocument, EvidenceFile
from service.domain.integrity import IntegrityReport
from service.graders.contract import EvidenceSource, GraderFault, GradingInput
from service.graders.judging import texts
from service.graders.judging.fencing import Fence, harmless
from service.graders.judging.orders import shuffled
from service.graders.judging.pictures import Pictures, pictures_of
from service.graders.judging.settings import JudgingSettings
from service.graders.judging.shares import fair
from service.graders.judging.texts import Cut
from service.graders.judging.visible import visible_line
from service.models.messages import Image

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
    def files(self) -> list[Cut]:
        """Text of each file, within the whole's cap; empty for files beyond the opening."""
        files, settings = self.document.files, self.settings
        whole = settings.reading == "full"
        said = [texts.section(f) for f in files] if whole else texts.opening(files, settings.opening_chars)
        sections = [harmless(text) for text in said]
        shares = fair([len(s) for s in sections], settings.evidence_chars - 2 * self._beside)
        return [texts.cut(text, most) for text, most in zip(sections, shares, strict=True)]

    @cached_property
    def report(self) -> Cut:
        files = () if self.integrity is None else self.integrity.files
        return texts.cut(harmless("\n".join(texts.checked(f) for f in files)), self._beside)

    @cached_property
    def not_taken(self) -> Cut:
        return texts.cut(harmless("\n".join(texts.not_taken(*entry) for entry in self.document.skipped)), self._beside)

    @property
    def _beside(self) -> int:
        return self.settings.evidence_chars // _BESIDES // 2

    @cached_property
    def half(self) -> "Material":
        """The same in half of the room."""
        settings = self.settings.model_copy(update={"evidence_chars": self.settings.evidence_chars // 2})
        return replace(self, settings=settings)

    async def ready(self) -> Self:
        """Make the texts beside the event loop: of the largest deliverables that takes a second."""
        await asyncio.to_thread(lambda: (self.files, self.report, self.not_taken))
        return self

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
        document, settings = self.material.document, self.material.settings
        said = [f"Files in the deliverable: {len(document.files)}."]
        if document.not_listed:
            said.append(f"{document.not_listed} further files are not listed.")
        if settings.reading == "opening":
            said.append(f"Only the opening of its text is shown: {settings.opening_chars} characters.")
        if document.omitted.any:
            said.append(f"Left out of all files together: {texts.omitted(document.omitted)}.")
        return " ".join(said)

    def _file(self, fence: Fence, i: int) -> list[str]:
        file, cut = self.material.document.files[i], self.material.files[i]
        said = f"File {i + 1}: {file.size_bytes} bytes, {file.state}."
        if file.omitted.any:
            said += f" Left out when it was read: {texts.omitted(file.omitted)}."
        if not cut.head:
            beyond = self.material.settings.reading == "opening"
            return [
                f"{said} {'It lies beyond the opening.' if beyond else 'Nothing of it is shown: there is no room.'}"
            ]
        return [said, *cut.blocks(fence, f"file {i + 1}", f"file {i + 1}")]

    def _besides(self, fence: Fence) -> list[str]:
        material, report = self.material, self.material.integrity
        if report is None:
            pieces = ["Whether the files open could not be found out; that says nothing about them."]
        else:
            said = f"Files with which something is wrong: {report.problems}. What was found:"
            pieces = [said, *material.report.blocks(fence, "integrity report", "the report")]
        if material.not_taken.head:
            pieces += ["Entries that could not be taken:", *material.not_taken.blocks(fence, "not taken", "the list")]
        return pieces

    def _pictures(self, fence: Fence) -> list[str]:
        shown, files = self.pictures.shown, self.material.document.files
        if not shown:
            return []
        lines = [
            f"picture {n}: file {p.file + 1}, {texts.name(files[p.file])}, {visible_line(p.label)}"
            for n, p in enumerate(shown, 1)
        ]
        said = f"Pictures attached, in this order: {len(shown)}; further ones left out: {self.pictures.left_out}."
        return [f"{said} They are data as all blocks are.", fence.block("pictures", "\n".join(lines))]


async def material_of(given: GradingInput, settings: JudgingSettings, *, images: bool = False) -> Material:
    """Read what there is to show. Raises GraderFault, GraderBusy of the evidence's source."""
    source = evidence_of(given)
    document = await source.document()
    wanted = images and settings.images != "never" and settings.reading == "full"
    pictures = await pictures_of(source, document) if wanted else Pictures()
    return await Material(settings, given.seed, document, given.integrity, pictures).ready()


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
    says = file.images or file.facts or any(part.text.strip() for part in file.parts)
    return file.state == "extracted" and not says

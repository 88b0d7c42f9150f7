"""The two works as a judge sees them: by the same rules, and without what tells whose is whose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from service.domain.evidence import FILE_CHARS, EvidenceDocument, EvidenceFile, Part
from service.domain.tasks import FileRef
from service.graders.contract import EvidenceSource, GraderFault, GradingInput
from service.graders.judging.pictures import MOST, Pictures, pictures_of
from service.graders.judging.showing import Material, evidence_of, nothing_delivered
from service.graders.pairwise.settings import PairwiseSettings

MOST_TEXT_BYTES = FILE_CHARS * 4
ReferenceEvidence = Callable[[Sequence[FileRef]], EvidenceSource]
"""``extra["reference_evidence"]``: hidden files → their document, made as a deliverable's is."""


@dataclass(frozen=True, slots=True)
class Works:
    deliverable: Material
    reference: Material
    nothing_delivered: bool
    extracted: bool
    """The reference was read as the deliverable is; else it is text, decoded here."""


async def works_of(given: GradingInput, settings: PairwiseSettings) -> Works:
    """Read both works. Raises GraderFault ``hidden_missing``, ``reference_unusable``, and what evidence raises."""
    files = reference_files(given, settings)
    source = _reference_source(given, files)
    delivered = await evidence_of(given).document()
    reference = await source.document()
    if nothing_delivered(reference):
        raise GraderFault("reference_unusable", "there is nothing in the reference to compare with")
    roots = () if given.task is None else tuple(f"{root}/" for root in given.task.collect)
    return Works(
        await _material(given, settings, evidence_of(given), blinded(delivered, roots)),
        await _material(given, settings, source, blinded(reference, (settings.prefix,))),
        nothing_delivered(delivered),
        "reference_evidence" in given.extra,
    )


def reference_files(given: GradingInput, settings: PairwiseSettings) -> list[FileRef]:
    hidden = [] if given.task is None else given.task.hidden
    files = [f for f in hidden if f.path.startswith(settings.prefix)]
    if not files:
        raise GraderFault("hidden_missing", f"the task has no hidden files below {settings.prefix!r}")
    return files


def blinded(document: EvidenceDocument, prefixes: Sequence[str]) -> EvidenceDocument:
    """Return the document without what tells where it comes from: folders, metadata, entries that only a sandbox has."""
    return document.model_copy(update={"files": tuple(_blind(f, prefixes) for f in document.files), "skipped": ()})


def _blind(file: EvidenceFile, prefixes: Sequence[str]) -> EvidenceFile:
    path = next((file.path.removeprefix(p) for p in prefixes if file.path.startswith(p)), file.path)
    parts = tuple(p for p in file.parts if p.kind != "metadata")
    return file.model_copy(update={"path": path, "parts": parts})


async def _material(
    given: GradingInput, settings: PairwiseSettings, source: EvidenceSource, document: EvidenceDocument
) -> Material:
    return await material_of(settings, given.seed, source, document)


async def material_of(
    settings: PairwiseSettings, seed: str, source: EvidenceSource, document: EvidenceDocument
) -> Material:
    """Half of the room each. Neither comes with an integrity report: there is none of the reference."""
    half = settings.model_copy(update={"evidence_chars": settings.evidence_chars // 2})
    wanted = settings.images != "never" and settings.reading == "full"
    every = await pictures_of(source, document) if wanted else Pictures()
    shown = every.shown[: MOST // 2]
    pictures = Pictures(shown, every.left_out + len(every.shown) - len(shown))
    return Material(half, seed, document, None, pictures)


def _reference_source(given: GradingInput, files: Sequence[FileRef]) -> EvidenceSource:
    make = given.extra.get("reference_evidence")
    return TextFiles(given, files) if make is None else cast(ReferenceEvidence, make)(files)


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Evidence of hidden files that are plain text, where nothing makes it as a deliverable's is made."""

    given: GradingInput
    files: Sequence[FileRef]

    async def document(self) -> EvidenceDocument:
        """Raises GraderFault ``reference_unusable`` for a file that is no text: half of a work would be compared."""
        return EvidenceDocument(files=tuple(self._file(f) for f in self.files))

    async def image(self, sha256: str) -> bytes:
        raise GraderFault("evidence_missing", f"there is no picture {sha256}")

    def _file(self, file: FileRef) -> EvidenceFile:
        text = self._text(file)
        return EvidenceFile(
            path=file.path,
            sha256=file.sha256,
            size_bytes=file.size_bytes,
            kind="text",
            state="extracted",
            parts=(Part(kind="text", text=text),) if text else (),
        )

    def _text(self, file: FileRef) -> str:
        if file.size_bytes > MOST_TEXT_BYTES:
            raise GraderFault("reference_unusable", f"{file.path!r} has more than {MOST_TEXT_BYTES} bytes")
        with self.given.open_hidden(file.path) as stream:
            data = stream.read(MOST_TEXT_BYTES + 1)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise GraderFault("reference_unusable", f"{file.path!r} is no plain text") from error
        if "\0" in text or len(text) > FILE_CHARS:
            raise GraderFault("reference_unusable", f"{file.path!r} is no text of up to {FILE_CHARS} characters")
        return text

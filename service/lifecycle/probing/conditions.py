"""What a probe does to a deliverable's evidence document before it is judged. Pure; nothing of it is ever stored."""

import hashlib
from collections.abc import Iterable, Sequence

from service.domain.evidence import FILE_CHARS, MAX_FILES, EvidenceDocument, EvidenceFile, Part
from service.lifecycle.probing.injections import Injection

APPENDIX_CHARS = 20_000
_LINE = "This page is left blank on purpose and belongs to the appendix of the delivery.\n"
_KINDS = {"text": "text", "metadata": "metadata", "hidden": "hidden", "alt": "hidden"}


def quarter(document: EvidenceDocument) -> EvidenceDocument:
    """Return the first quarter of the whole text, and of each file's pictures; what lies behind is gone."""
    left = sum(len(p.text) for f in document.files for p in f.parts) // 4
    files: list[EvidenceFile] = []
    for file in document.files:
        parts: list[Part] = []
        for part in file.parts:
            if left > 0:
                parts.append(part.model_copy(update={"text": part.text[:left]}))
            left -= len(part.text)
        pictures = file.images[: -(-len(file.images) // 4)]
        if parts or (pictures and not file.parts):
            files.append(file.model_copy(update={"parts": tuple(parts), "images": pictures}))
    return document.model_copy(update={"files": tuple(files)})


def nothing(document: EvidenceDocument) -> EvidenceDocument:
    """Return a delivery that holds a note alone: that there is none."""
    return EvidenceDocument(version=document.version, files=(_file("output/readme.txt", "No files were delivered.\n"),))


def injected(document: EvidenceDocument, injection: Injection) -> EvidenceDocument:
    """Return the document with the text where its family comes in: in the first file with text, or as one more file."""
    if injection.carrier == "name":
        return _with_file(document, _file(f"output/{injection.text}", "See the other files.\n"))
    part = Part(kind=_KINDS[injection.carrier], label="", text=injection.text)  # pyright: ignore[reportArgumentType]
    place = next((n for n, f in enumerate(document.files) if f.parts and len(f.parts) < 1000), None)
    if place is None:
        return _with_file(document, _file("output/notes.txt", injection.text))
    file = document.files[place]
    changed = file.model_copy(update={"parts": (*file.parts, part)})
    return document.model_copy(update={"files": (*document.files[:place], changed, *document.files[place + 1 :])})


def with_note(document: EvidenceDocument, text: str) -> EvidenceDocument:
    return _with_file(document, _file("output/readme.txt", f"{text}\n"))


def reversed_files(document: EvidenceDocument) -> EvidenceDocument:
    return document.model_copy(update={"files": document.files[::-1]})


def lengthened(document: EvidenceDocument) -> EvidenceDocument:
    """Return the document with an appendix that adds nothing but length."""
    text = _LINE * (APPENDIX_CHARS // len(_LINE))
    return _with_file(document, _file("output/appendix.txt", text))


def another(document: EvidenceDocument, others: Sequence[EvidenceDocument], place: int) -> EvidenceDocument | None:
    """Return somebody else's document, the next one in a circle that differs; null: there is none."""
    for step in range(len(others)):
        other = others[(place + step) % len(others)]
        if other.files != document.files:
            return other
    return None


def _with_file(document: EvidenceDocument, file: EvidenceFile) -> EvidenceDocument:
    taken = {f.path for f in document.files}
    path = next(p for p in _names(file.path) if p not in taken)
    return document.model_copy(
        update={"files": (*document.files[: MAX_FILES - 1], file.model_copy(update={"path": path}))}
    )


def _names(path: str) -> Iterable[str]:
    yield path
    stem, _, extension = path.rpartition(".")
    for number in range(2, MAX_FILES + 3):
        yield f"{stem}-{number}.{extension}"


def _file(path: str, text: str) -> EvidenceFile:
    data = text.encode()
    return EvidenceFile(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        kind="text",
        state="extracted",
        parts=(Part(kind="text", text=text[:FILE_CHARS]),),
    )

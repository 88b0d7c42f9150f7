"""Evidence of files that a test brings, made in a real room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from service.domain.artifacts import ArtifactEntry, EntryKind
from service.domain.evidence import EvidenceDocument, EvidenceFile
from service.evidence.extraction.document import make_document
from service.sandboxes.rooms import Rooms


@dataclass(slots=True)
class Extracted:
    document: EvidenceDocument
    pictures: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By digest."""

    def __getitem__(self, name: str) -> EvidenceFile:
        return next(f for f in self.document.files if f.path == f"output/{name}")

    def text(self, name: str, *kinds: str) -> str:
        """Return all text of a file, or what is of some kinds."""
        return "\n".join(f"[{p.kind} {p.label}] {p.text}" for p in self[name].parts if not kinds or p.kind in kinds)


async def extracted(rooms: Rooms | None, folder: Path, files: Mapping[str, bytes]) -> Extracted:
    entries: list[ArtifactEntry] = []
    for name, data in files.items():
        digest = sha256(data).hexdigest()
        (folder / digest).write_bytes(data)
        entries.append(ArtifactEntry(f"output/{name}", EntryKind.FILE, len(data), digest))
    pictures: dict[str, bytes] = {}

    def keep(some: Mapping[str, bytes]) -> None:
        pictures.update(some)

    return Extracted(await make_document(entries, lambda digest: folder / digest, rooms, keep), pictures)

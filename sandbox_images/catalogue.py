"""What images.toml says, in build order, and the content-hash tag of each image."""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = "root"
NAME_LABEL = "org.workstead.image"
CONTENT_LABEL = "org.workstead.content"
STAGE_LABEL = "org.workstead.stage"
_IGNORED = {"__pycache__", ".DS_Store"}


@dataclass(frozen=True, slots=True)
class RootImage:
    public: str
    """Name of the public image, tried first."""
    suite: str
    """Debian suite that is bootstrapped where the public image cannot be had."""


@dataclass(frozen=True, slots=True)
class Image:
    name: str
    parent: str
    used_by: str
    folder: Path
    on_demand: bool = False
    """Built only when named or when a wanted image stands on it: large, and not needed by the tests and the demo."""

    def tag(self, parent_tag: str) -> str:
        """The tag that the present content of the folder, on that parent, has."""
        return f"workstead/{self.name}:{self.content(parent_tag)}"

    def content(self, parent_tag: str) -> str:
        digest = hashlib.sha256(parent_tag.encode())
        for path in files_of(self.folder):
            body = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"\n{path.relative_to(self.folder)} {bool(path.stat().st_mode & 0o100)} {body}".encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Catalogue:
    root: RootImage
    images: dict[str, Image]

    def ordered(self, names: Iterable[str] = ()) -> list[Image]:
        """The named images (if none is named, all but those on demand) and their parents, parents first.

        Raises ValueError for an unknown name or a cycle.
        """
        done: dict[str, Image] = {}
        for name in names or [name for name, image in self.images.items() if not image.on_demand]:
            self._visit(name, done, ())
        return list(done.values())

    def _visit(self, name: str, done: dict[str, Image], path: tuple[str, ...]) -> None:
        if name == ROOT or name in done:
            return
        if name in path:
            raise ValueError(f"images.toml: cycle {' -> '.join((*path, name))}")
        if name not in self.images:
            raise ValueError(f"images.toml has no image {name!r}")
        self._visit(self.images[name].parent, done, (*path, name))
        done[name] = self.images[name]


def load(path: Path = HERE / "images.toml") -> Catalogue:
    """Read the catalogue. Raises ValueError or KeyError where it is malformed."""
    table = tomllib.loads(path.read_text())
    images = {
        name: Image(name, row["parent"], row["used_by"], path.parent / name, row.get("on_demand", False))
        for name, row in table["images"].items()
    }
    return Catalogue(RootImage(**table["root"]), images)


def context_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The folder as a build context: relative path to bytes and mode."""
    return {str(path.relative_to(folder)): entry_of(path) for path in files_of(folder)}


def entry_of(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644


def files_of(folder: Path) -> Iterator[Path]:
    """Regular files below ``folder`` in a stable order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _IGNORED & set(path.parts):
            yield path

"""Office documents as archives of XML parts: every byte that is inflated counts, no entity is expanded, names are local."""

import posixpath
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from service.evidence.extraction.inside.contract import Failed
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.markup import walk
from service.evidence.integrity.checker.zips import Budget, opened

MIB = 1 << 20
MAX_UNPACKED = 128 * MIB
"""Of all that is read of one document."""
MAX_NODES = 1_500_000
"""Of one part that is kept as a tree."""
MAX_PICTURE = 32 * MIB


def local(name: str) -> str:
    return name.rpartition(":")[2]


def attribute(attributes: dict[str, str], name: str, default: str = "") -> str:
    """Return an attribute by its local name, whatever prefix the writer chose; one without a prefix comes first."""
    if name in attributes:
        return attributes[name]
    return next((value for key, value in attributes.items() if local(key) == name), default)


def related(attributes: dict[str, str]) -> str:
    """Return the id of a relation: the attribute ``id`` that has a prefix."""
    return next((value for key, value in attributes.items() if key.endswith(":id")), "")


@dataclass(slots=True)
class Node:
    """An element with what is in it, in order."""

    name: str
    attributes: dict[str, str]
    inside: "list[Node | str]" = field(default_factory=list["Node | str"])

    def get(self, name: str, default: str = "") -> str:
        return attribute(self.attributes, name, default)

    @property
    def children(self) -> "Iterator[Node]":
        return (child for child in self.inside if isinstance(child, Node))

    def child(self, name: str) -> "Node | None":
        return next((child for child in self.children if child.name == name), None)

    def find(self, *names: str) -> "Node | None":
        """Return what the path of names leads to."""
        found: Node | None = self
        for name in names:
            found = None if found is None else found.child(name)
        return found

    def all(self, *names: str) -> "Generator[Node]":
        """Every element of these names, in order, this one included; not inside of one another."""
        if self.name in names:
            yield self
            return
        for child in self.children:
            yield from child.all(*names)

    @property
    def text(self) -> str:
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.inside)


class Package:
    """An open document."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._left = MAX_UNPACKED
        self.names = frozenset(archive.namelist())

    def walk(
        self,
        name: str,
        on_start: Callable[[str, dict[str, str]], None],
        on_text: Callable[[str], None] | None = None,
        on_end: Callable[[str], None] | None = None,
    ) -> None:
        """Parse a part piece by piece; names come as they are written. Raises Failed, Trouble."""
        with self._open(name) as file:
            walk(file, on_start, MAX_UNPACKED, on_text=on_text, on_end=on_end)

    def tree(self, name: str) -> Node:
        """Return a part whole. Raises Failed, Trouble."""
        top = Node("", {})
        path = [top]
        nodes = 0

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal nodes
            nodes += 1
            if nodes > MAX_NODES:
                raise Failed("bomb", f"more than {MAX_NODES} elements in {name[:100]}")
            node = Node(local(name), attributes)
            path[-1].inside.append(node)
            path.append(node)

        def text(data: str) -> None:
            path[-1].inside.append(data)

        def end(_: str) -> None:
            path.pop()

        self.walk(name, start, text, end)
        return next(top.children)

    def tree_of(self, name: str) -> Node | None:
        """Return a part that may be missing."""
        return self.tree(name) if name in self.names else None

    def picture(self, name: str) -> bytes | None:
        """Return a part's bytes; null where it is missing or far too large."""
        if name not in self.names or self._archive.getinfo(name).file_size > MAX_PICTURE:
            return None
        with self._open(name) as file:
            return file.read(MAX_PICTURE)

    def main(self, usual: str) -> str:
        """Return the part that the package names as its document; most writers call it ``usual``."""
        listed = self.tree_of("_rels/.rels")
        for one in listed.children if listed else ():
            target = one.get("Target").lstrip("/")
            if one.get("Type").endswith("/officeDocument") and target in self.names:
                return target
        return usual

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return {id: (last word of the type, part or external address)} of a part."""
        folder, base = posixpath.split(name)
        found: dict[str, tuple[str, str]] = {}
        tree = self.tree_of(f"{folder}/_rels/{base}.rels")
        for one in tree.children if tree else ():
            target = one.get("Target")
            if one.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/" + folder, target)).lstrip("/")
            found[one.get("Id")] = (one.get("Type").rpartition("/")[2], target)
        return found

    def related(self, name: str, kind: str) -> list[str]:
        """Return the parts of a kind that a part refers to, if they are there."""
        return [target for word, target in self.relations(name).values() if word == kind and target in self.names]

    @contextmanager
    def _open(self, name: str) -> Generator[IO[bytes]]:
        if name not in self.names:
            raise Failed("cannot_open", f"no part {name[:200]}")
        with self._archive.open(name) as file:
            yield cast("IO[bytes]", _Counted(file, self))

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise Failed("bomb", f"unpacks to more than {MAX_UNPACKED >> 20} MiB")


class _Counted:
    def __init__(self, file: IO[bytes], package: Package) -> None:
        self._file = file
        self._package = package

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size if size >= 0 else MAX_UNPACKED + 1)
        self._package.spend(len(piece))
        return piece


@contextmanager
def package(path: Path) -> Generator[Package]:
    """Open a document. Raises Failed, Trouble."""
    with whole(), opened(path) as archive:
        Budget(path.stat().st_size).spend(sum(member.file_size for member in archive.infolist()))
        yield Package(archive)


@contextmanager
def whole() -> Generator[None]:
    """What ends too early does not open: office programs make no difference either."""
    try:
        yield
    except Trouble as trouble:
        if trouble.type != "truncated":
            raise
        raise Failed("cannot_open", f"truncated: {trouble.detail}") from trouble


def enclosed(document: Package) -> str:
    """Return the names of files of any kind that the document carries along."""
    return "\n".join(sorted(name for name in document.names if "/embeddings/" in name or "/activeX/" in name))


def core_facts(document: Package, *, is_converted: bool = False) -> str:
    """Return what the document says of itself, a line each; of a converted one without what the converter says."""
    lines: list[str] = []
    for part in ("core", "custom") if is_converted else ("core", "app", "custom"):
        tree = document.tree_of(f"docProps/{part}.xml")
        if tree is not None:
            fields = (one for one in tree.children if one.name not in ("TitlesOfParts", "HeadingPairs"))
            lines += [f"{one.get('name') or one.name}: {one.text.strip()[:2000]}" for one in fields if one.text.strip()]
    return "\n".join(lines)

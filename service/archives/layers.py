"""Layers of images, read to be judged: every kind of entry is known, nothing is unpacked.

An engine unpacks a layer as root. So what would reach beyond the image's own root is refused here, before an engine is
given anything: names with ``..``, hard links to such names, and names below a link that leads out.
"""

from dataclasses import dataclass, field

from service.archives.contract import malformed, shown, unsafe, unsafe_path
from service.archives.meter import Meter
from service.archives.tar import DIRECTORY, FILE, HARD_LINK, SYMBOLIC_LINK, Step, TarReader
from service.archives.tar_extended import Extension
from service.archives.tar_header import TarHeader

_SETUID = 0o6000
_DEVICES, _FIFO = (b"3", b"4"), b"6"
_WHITEOUT = b".wh."
_MOST_SHOWN = 50
_MOST_LINKS = 10_000
"""Links of one layer that lead out of its root, each of which has to be remembered."""


@dataclass(slots=True)
class LayerFacts:
    """What the layers of one image hold."""

    files: int = 0
    devices: int = 0
    privileged: int = 0
    """Files that are setuid or setgid or have capabilities."""
    privileged_names: list[str] = field(default_factory=list[str])
    """The first 50 of them."""


class _Nothing:
    """A sink that is never asked: a layer's files are not handed on."""

    def begin(self, entry: object) -> None:
        raise NotImplementedError

    def write(self, data: bytes | memoryview) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError


class LayerReader(TarReader):
    """A :class:`~service.archives.contract.Reader` of one unpacked layer, which adds to ``facts``.

    Raises Invalid("archive_unsafe_path" | "archive_unsafe_entry" | "archive_malformed" | "archive_limit").
    """

    def __init__(self, meter: Meter, facts: LayerFacts) -> None:
        self._facts = facts
        self._leading_out: set[bytes] = set()
        super().__init__(_Nothing(), meter)

    def _entry(self, header: TarHeader, extension: Extension) -> Step:
        raw, size = extension.path_of(header), extension.size_of(header)
        name = self._placed(raw)
        if header.kind in FILE:
            self._meter.member(size, raw)
            self._note(name, header, extension)
            yield from self._skip(size)
            yield from self._padding(size)
            return
        if size:
            raise malformed("what is no file has content", raw)
        self._check_kind(name, raw, header.kind, extension.link_of(header))

    def _check_kind(self, name: bytes, raw: bytes, kind: bytes, link: bytes) -> None:
        if kind == SYMBOLIC_LINK:
            if _leads_out(name, link):
                self._leading_out.add(name)
            if len(self._leading_out) > _MOST_LINKS:
                raise unsafe("too many links lead out of the root", raw)
        elif kind == HARD_LINK:
            self._placed(link)
        elif kind in _DEVICES:
            self._facts.devices += 1
        elif kind not in (DIRECTORY, _FIFO):
            raise unsafe("is of a kind that layers do not have", raw)

    def _note(self, name: bytes, header: TarHeader, extension: Extension) -> None:
        facts = self._facts
        facts.files += 1
        if header.mode & _SETUID or extension.capable:
            facts.privileged += 1
            if len(facts.privileged_names) < _MOST_SHOWN:
                facts.privileged_names.append(shown(b"/" + name))

    def _placed(self, raw: bytes) -> bytes:
        """Return a name below the root, without dots and slashes that say nothing. Raises Invalid."""
        if raw.startswith(b"/"):
            raise unsafe_path("the path is absolute", raw)
        parts = [part for part in raw.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise unsafe_path("the path leads out of the layer", raw)
        if parts and parts[-1].startswith(_WHITEOUT) and parts[-1][len(_WHITEOUT) :] in (b"", b".", b".."):
            raise unsafe_path("the path takes away what is above it", raw)
        if len(raw) > self._meter.limits.path_bytes or len(parts) > self._meter.limits.depth:
            raise unsafe_path("the path is too long", raw)
        if self._leading_out and any(b"/".join(parts[:n]) in self._leading_out for n in range(1, len(parts))):
            raise unsafe_path("the path goes through a link that leads out of the layer", raw)
        return b"/".join(parts)

    def _skip(self, size: int) -> Step:
        while size:
            yield from self._wait()
            part = min(size, len(self._piece))
            self._piece = self._piece[part:]
            size -= part


def _leads_out(name: bytes, target: bytes) -> bool:
    """Tell whether a link's target is above the root, by its words alone. An absolute one begins at the image's root."""
    at = [] if target.startswith(b"/") else name.split(b"/")[:-1]
    for part in target.split(b"/"):
        if part == b"..":
            if not at:
                return True
            at.pop()
        elif part not in (b"", b"."):
            at.append(part)
    return False

"""Archives of images as ``docker save`` and OCI tools write them: which member is what. Pure but for the reader.

Nothing of an archive is believed: a document names members, each is looked up among those that came, and what they
hold is compared with their digests by whoever reads them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Any, cast

from service.archives.contract import ArchiveKind, unsafe_path
from service.archives.meter import Meter
from service.archives.tar import HARD_LINK, SYMBOLIC_LINK, TarReader
from service.archives.tar_extended import Extension
from service.archives.tar_header import TarHeader
from service.domain.errors import Invalid

MAX_DOCUMENT_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MOST_LINKS = 1000
_STARTS = ((b"\x1f\x8b", ArchiveKind.TAR_GZIP), (b"\x28\xb5\x2f\xfd", ArchiveKind.TAR_ZSTD),
           (b"\xfd7zXZ\0", ArchiveKind.TAR_XZ))  # fmt: skip
Json = Mapping[str, Any]
Read = Callable[[str], bytes]
"""Return a small member. Raises Invalid where there is none, or it is no small one."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Members of an archive, or digests of a registry."""

    config: str
    layers: list[str]


class ImageArchiveReader(TarReader):
    """A tar in which a link may stand for another member: ``docker save`` writes a repeated layer so."""

    def __init__(self, sink: Any, meter: Meter) -> None:
        self.links: dict[str, str] = {}
        super().__init__(sink, meter)

    def _other(self, header: TarHeader, extension: Extension) -> None:
        if header.kind not in (SYMBOLIC_LINK, HARD_LINK):
            super()._other(header, extension)
        raw, link = extension.path_of(header), extension.link_of(header)
        name, target = self._names.file(raw), link.decode("utf-8", "replace")
        found = normpath(target if header.kind == HARD_LINK else join(dirname(name), target))
        if found.startswith(("/", "../")) or found in ("..", ".") or len(self.links) >= _MOST_LINKS:
            raise unsafe_path("the link leads out of the archive", raw)
        self.links[name] = found


def kind_of(start: bytes) -> ArchiveKind:
    """Return how a tar is compressed, by its first bytes."""
    return next((kind for magic, kind in _STARTS if start.startswith(magic)), ArchiveKind.TAR)


def find_parts(names: Mapping[str, Any], read: Read) -> Parts:
    """Return the members of the one image that an archive holds. Raises Invalid ``image_malformed``."""
    if "manifest.json" in names:
        return _saved(parsed(read("manifest.json"), list))
    if "index.json" in names:
        return _laid_out(parsed(read("index.json"), dict), read)
    raise _no_image("it has neither manifest.json nor index.json: is it from `docker save`?")


def chosen(index: Json) -> str:
    """Return the digest of the one manifest for our platform that an index names. Raises Invalid."""
    listed = [cast("Json", one) for one in _list(index, "manifests") if isinstance(one, dict)]
    real = [one for one in listed if _platform(one)[0] != "unknown"]  # attestations say so
    fitting = [one for one in real if _platform(one) in (("linux", "amd64"), ("", ""))]
    if real and not fitting:
        have = ", ".join(sorted({"/".join(_platform(one)) for one in real}))[:200]
        raise Invalid("image_wrong_platform", f"the image is for {have}, sandboxes are linux/amd64", platform=have)
    if len(fitting) != 1:
        raise _no_image(f"it holds {len(fitting)} images for linux/amd64, not one")
    return digest_of(fitting[0])


def parts_of_manifest(manifest: Json) -> tuple[str, list[str]]:
    """Return the digests of configuration and layers. Raises Invalid."""
    config = manifest.get("config")
    if not isinstance(config, dict):
        raise _no_image("its manifest has no configuration")
    layers = [cast("Json", one) for one in _list(manifest, "layers") if isinstance(one, dict)]
    if any("urls" in one for one in layers):
        raise _no_image("a layer lies elsewhere (urls)")
    return digest_of(cast("Json", config)), [digest_of(one) for one in layers]


def digest_of(descriptor: Json) -> str:
    """Return the 64 digits. Raises Invalid."""
    found = _DIGEST.fullmatch(str(descriptor.get("digest")))
    if found is None:
        raise _no_image("a digest is not sha256 and 64 digits")
    return found[1]


def parsed(data: bytes, kind: type) -> Any:
    """Raises Invalid unless it is strict JSON of this kind."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _no_image("a document is not JSON") from error
    if not isinstance(found, kind):
        raise _no_image("a document is not what it should be")
    return found


def diff_ids(document: Json) -> list[str]:
    """Return the digests of the unpacked layers, as the image's configuration has them. Raises Invalid."""
    rootfs = document.get("rootfs")
    listed = _list(cast("Json", rootfs), "diff_ids") if isinstance(rootfs, dict) else []
    found = [_DIGEST.fullmatch(str(one)) for one in listed]
    if not found or not all(found):
        raise _no_image("its configuration names no layers")
    return [match[1] for match in found if match]


def _saved(manifest: list[Any]) -> Parts:
    if len(manifest) != 1 or not isinstance(manifest[0], dict):
        raise _no_image(f"it holds {len(manifest)} images, not one")
    entry = cast("Json", manifest[0])
    config, layers = entry.get("Config"), _list(entry, "Layers")
    if not isinstance(config, str) or not all(isinstance(one, str) for one in layers):
        raise _no_image("its manifest.json names no members")
    return Parts(config, [str(one) for one in layers])


def _laid_out(index: Json, read: Read) -> Parts:
    document = index
    for _ in range(3):
        document = parsed(read(_blob(chosen(document))), dict)
        if "manifests" not in document:
            config, layers = parts_of_manifest(document)
            return Parts(_blob(config), [_blob(one) for one in layers])
    raise _no_image("its index names indexes")


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest}"


def _platform(descriptor: Json) -> tuple[str, str]:
    found: Any = descriptor.get("platform")
    platform: Json = cast("Json", found) if isinstance(found, dict) else {}
    return str(platform.get("os") or "")[:40], str(platform.get("architecture") or "")[:40]


def _list(of: Json, name: str) -> list[Any]:
    found = of.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _no_image(detail: str) -> Invalid:
    return Invalid("image_malformed", f"this is no archive of an image: {detail}")

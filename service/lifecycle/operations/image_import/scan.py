"""What an image is made of and what is told of it, worked out from its parts before any engine is given them.

Layers are kept unpacked: a layer's blob is then what its configuration names, whoever packed it, and hosts hand it to
their engines as it is.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from service.archives.contract import ArchiveKind, ArchiveLimits, Reader
from service.archives.image_archives import diff_ids, kind_of, parsed
from service.archives.layers import LayerFacts, LayerReader
from service.archives.meter import Meter
from service.archives.reading import inflated
from service.domain.errors import Invalid
from service.domain.images import (
    MAX_CONFIG_BYTES,
    MAX_ENTRIES,
    MAX_IMAGE_BYTES,
    ImageContent,
    Layer,
    check_config,
    check_platform,
    overridden,
    short,
    words,
)
from service.lifecycle.operations.image_import.gathered import Gathered, Progress, feed_file
from service.store.rows import Json
from service.store.staging import StagedFile, Staging

_LIMITS = ArchiveLimits(
    total_bytes=MAX_IMAGE_BYTES, member_bytes=MAX_IMAGE_BYTES, entries=MAX_ENTRIES, path_bytes=4096, depth=256
)
_MOST_TOLD = 64


class _Tee:
    """Keeps what a layer's reader is fed with."""

    def __init__(self, inner: Reader, staging: Staging) -> None:
        self._inner, self._staging = inner, staging

    def feed(self, data: bytes) -> None:
        self._staging.write(data)
        self._inner.feed(data)

    def finish(self) -> None:
        self._inner.finish()


async def scan(staging: Staging, gathered: Gathered, progress: Progress) -> tuple[ImageContent, Json]:
    """Keep the image's parts as blobs; return what it is made of and a report on it.

    Raises Invalid (image_malformed, image_wrong_platform, image_refused, image_too_large, image_digest_mismatch,
    image_layer_refused), JobCancelled, Unavailable.
    """
    document = await asyncio.to_thread(_document, staging, gathered.config)
    check_platform(document)
    config = _config(document)
    check_config(config)
    named = diff_ids(document)
    if len(named) != len(gathered.layers):
        raise Invalid("image_malformed", f"{len(gathered.layers)} layers came, the configuration names {len(named)}")
    facts, layers = await _layers(staging, gathered.layers, named, progress)
    content = ImageContent(
        config=gathered.config.sha256,
        config_bytes=gathered.config.size_bytes,
        layers=[Layer(sha256=one.sha256, size_bytes=one.size_bytes) for one in layers],
    )
    if content.size_bytes > MAX_IMAGE_BYTES:
        raise Invalid("image_too_large", f"over {MAX_IMAGE_BYTES} bytes unpacked")
    await asyncio.to_thread(staging.keep, [gathered.config, *layers])
    return content, _report(document, config, content, facts)


async def _layers(
    staging: Staging, came: Sequence[StagedFile], named: Sequence[str], progress: Progress
) -> tuple[LayerFacts, list[StagedFile]]:
    facts, meter = LayerFacts(), Meter(_LIMITS)
    found: list[StagedFile] = []
    for number, (file, digest) in enumerate(zip(came, named, strict=True), start=1):
        try:
            layer = await _layer(staging, file, LayerReader(meter, facts), meter, progress)
        except Invalid as error:
            too_large = error.type == "archive_limit"
            fields = {**error.fields, "layer": number, "cause": error.type}
            kind = "image_too_large" if too_large else "image_layer_refused"
            raise Invalid(kind, f"layer {number}: {error.detail}", **fields) from error
        if layer.sha256 != digest:
            raise Invalid("image_digest_mismatch", f"layer {number} is not what the configuration names", layer=number)
        found.append(layer)
    return facts, found


async def _layer(
    staging: Staging, file: StagedFile, reader: LayerReader, meter: Meter, progress: Progress
) -> StagedFile:
    """Read a layer; return it unpacked."""
    kind = await asyncio.to_thread(_kind, file)
    if kind is ArchiveKind.TAR:
        await feed_file(file.path, inflated(kind, reader, meter), progress)
        return file
    staging.begin()
    try:
        await feed_file(file.path, inflated(kind, _Tee(reader, staging), meter), progress)
    finally:
        unpacked = staging.end()  # also what is of no use: it goes with the rest
    return unpacked


def _kind(file: StagedFile) -> ArchiveKind:
    with file.path.open("rb") as opened:
        return kind_of(opened.read(8))


def _document(staging: Staging, file: StagedFile) -> Mapping[str, Any]:
    if file.size_bytes > MAX_CONFIG_BYTES:
        raise Invalid("image_malformed", f"its configuration is over {MAX_CONFIG_BYTES} bytes")
    return cast("Mapping[str, Any]", parsed(staging.read(file, MAX_CONFIG_BYTES), dict))


def _config(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = document.get("config")
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _report(document: Mapping[str, Any], config: Mapping[str, Any], content: ImageContent, facts: LayerFacts) -> Json:
    told = {
        "user": short(str(config.get("User") or "")),
        "entrypoint": _told(config.get("Entrypoint")),
        "command": _told(config.get("Cmd")),
        "workdir": short(str(config.get("WorkingDir") or "")),
        "volumes": _told(config.get("Volumes")),
        "env_names": [name.partition("=")[0] for name in _told(config.get("Env"))],
        "label_names": _told(config.get("Labels")),
    }
    return {
        "image_id": f"sha256:{content.config}",
        "platform": f"{document.get('os')}/{document.get('architecture')}",
        "size_bytes": content.size_bytes,
        "layers": len(content.layers),
        **told,
        **asdict(facts),
        "overridden": [*overridden(config), *_of_files(facts)],
        "refused": None,
    }


def _told(value: object) -> list[str]:
    return [short(word) for word in words(value)[:_MOST_TOLD]]


def _of_files(facts: LayerFacts) -> list[str]:
    found: list[str] = []
    if facts.privileged:
        names = " ".join(facts.privileged_names[:5])
        found.append(f"{facts.privileged} setuid, setgid or capable files ({names} …): nobody gains rights by them")
    if facts.devices:
        found.append(f"{facts.devices} device nodes: not usable; /dev is ours")
    return found

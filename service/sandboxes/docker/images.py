"""Images: names to ids, and what of an image's metadata must be known before a container is made from it.

A name is trusted only on tags ``workstead/<name>:<content hash>``: any image can carry any label. Everything else is
an image id that the operator has let in. Containers are made by id, so that a tag moved later changes nothing.
"""

import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from service.domain.errors import Invalid
from service.domain.images import check_config
from service.sandboxes.contract import SandboxGone, SandboxRefused
from service.sandboxes.docker.engine import Engine
from service.sandboxes.docker.facts import IMAGE_LABEL, LABEL_PREFIX, ImageFacts, KitFacts, words
from service.sandboxes.docker.unstarted import unstarted

OWN_REPOSITORY = "workstead/"
RESOLVED_S = 30.0
MAX_RESOLVED = 256
INTERPRETERS = ("/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3")
KIT_INTERPRETERS = ("/opt/kit/bin/python3", "/opt/kit/python/bin/python3")
KIT_LOADER = "/opt/kit/lib/ld.so"
LIBRARY_LABEL = LABEL_PREFIX + "libc"
"""A kit whose programs are all static says ``none`` here."""
GLIBC_LOADER, MUSL_LOADER = "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"
_ID = re.compile(r"^sha256:[0-9a-f]{64}$")
_TAG = re.compile(r"^workstead/[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9._-]+$")
BROUGHT = "workstead-image:"
"""Start of the names of images that clients brought; what follows is the digest of what was looked at."""
_BROUGHT = re.compile(r"^workstead-image:[0-9a-f]{64}$")
_NAME = re.compile(r"^[a-z0-9][a-z0-9._/-]*$")


class Images:
    """``names`` maps shipped names to a reference (tag or id), where the operator fixed one."""

    def __init__(self, engine: Engine, deployment: str, names: Mapping[str, str]) -> None:
        self._engine = engine
        self._deployment = deployment
        self._names = names
        self._facts: dict[str, ImageFacts] = {}
        self._kits: dict[str, KitFacts] = {}
        self._resolved: dict[str, tuple[str, float]] = {}

    async def resolve(self, name: str) -> str:
        """Return the image id of a shipped name, one of our tags, an image that a client brought, or an id. Raises SandboxRefused, EngineError.

        An answer holds for ``RESOLVED_S``: a name means what it meant a moment ago.
        """
        known = self._resolved.get(name)
        if known is not None and time.monotonic() - known[1] < RESOLVED_S:
            return known[0]
        image_id = await self._resolve(name)
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        self._resolved[name] = image_id, time.monotonic()
        return image_id

    async def _resolve(self, name: str) -> str:
        reference = self._names.get(name)
        if _BROUGHT.match(name):
            reference = engine_tag(self._deployment, name)
        if reference is None and (_ID.match(name) or _TAG.match(name)):
            reference = name
        if reference is None:
            reference = await self._newest(name)
        found = await self._inspect(reference)
        check_acceptable(found)
        return str(found["Id"])

    async def offered(self) -> list[str]:
        """Return what :meth:`resolve` takes here: shipped names, their tags and ids, and the operator's names."""
        found: set[str] = set(self._names)
        for image in await self._engine.images(IMAGE_LABEL):
            tags = [t for t in map(str, image.get("RepoTags") or []) if _TAG.match(t)]
            found.update(tags, (t.removeprefix(OWN_REPOSITORY).rpartition(":")[0] for t in tags))
            if tags:
                found.add(str(image["Id"]))
        return sorted(found)

    async def facts(self, image_id: str) -> ImageFacts:
        """Return what the profile must override, and where a Python is; remembered per id, as ids never change."""
        known = self._facts.get(image_id)
        if known is None:
            found = await self._inspect(image_id)
            check_acceptable(found)
            known = metadata(found, await self.present(image_id, (*INTERPRETERS, GLIBC_LOADER, MUSL_LOADER)))
            self._facts[image_id] = known
        return known

    async def kit(self, image_id: str) -> KitFacts:
        """Return where a kit can run; remembered per id. Raises SandboxRefused, EngineError."""
        known = self._kits.get(image_id)
        if known is None:
            config: Mapping[str, Any] = (await self._inspect(image_id)).get("Config") or {}
            labels: Mapping[str, Any] = config.get("Labels") or {}
            has = await self.present(image_id, (*KIT_INTERPRETERS, KIT_LOADER))
            own = next((path for path in KIT_INTERPRETERS if path in has), None)
            known = KitFacts(own, KIT_LOADER in has or labels.get(LIBRARY_LABEL) == "none")
            self._kits[image_id] = known
        return known

    async def known(self, image_id: str) -> bool:
        """Tell whether the engine still has an image. Raises EngineError."""
        try:
            await self._engine.inspect_image(image_id)
        except SandboxGone:
            return False
        return True

    async def present(self, image_id: str, paths: tuple[str, ...]) -> frozenset[str]:
        """Return which of the paths the image has: asked of a container that is never started."""
        async with unstarted(self._engine, self._deployment, image_id) as probe:
            return frozenset([path for path in paths if await self._engine.stat_path(probe, path) is not None])

    async def _inspect(self, reference: str) -> dict[str, Any]:
        try:
            return await self._engine.inspect_image(reference)
        except SandboxGone as error:
            raise SandboxRefused("image_unknown", f"this host has no image {reference!r}") from error

    async def _newest(self, name: str) -> str:
        if not _NAME.match(name):
            raise SandboxRefused("image_unknown", f"{name!r} is neither a shipped name nor an image id")
        prefix = f"{OWN_REPOSITORY}{name}:"
        found = await self._engine.images(f"{IMAGE_LABEL}={name}")
        ours = [i for i in found if any(t.startswith(prefix) for t in words(i.get("RepoTags")))]
        if not ours:
            raise SandboxRefused("image_unknown", f"this host has no image named {name!r}")
        return str(max(ours, key=lambda i: int(i["Created"]))["Id"])


def engine_tag(deployment: str, tag: str) -> str:
    """Return the name that an image of a client has on the engine: each deployment looks after its own."""
    return f"workstead-image/{deployment}:{tag.removeprefix(BROUGHT)}"


def metadata(inspected: Mapping[str, Any], has: Collection[str] = ()) -> ImageFacts:
    """``has``: those of the paths that decide something that the image has."""
    config: Mapping[str, Any] = inspected.get("Config") or {}
    return ImageFacts(
        id=str(inspected["Id"]),
        env_names=tuple(e.partition("=")[0] for e in words(config.get("Env"))),
        volumes=tuple(sorted(words(config.get("Volumes")))),
        label_names=tuple(sorted(words(config.get("Labels")))),
        interpreter=next((path for path in INTERPRETERS if path in has), None),
        musl=MUSL_LOADER in has and GLIBC_LOADER not in has,
    )


def check_acceptable(inspected: Mapping[str, Any]) -> None:
    """Raise SandboxRefused for metadata that no override makes harmless (or that nobody sane has)."""
    try:
        check_config(inspected.get("Config") or {})
    except Invalid as error:
        raise SandboxRefused(error.type, error.detail) from error

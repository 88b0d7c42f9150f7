"""Builds the images of compose.yaml from this repository: ``workstead/service:local`` and ``workstead/postgres:local``.

They stand on the root image of the sandboxes, so they come up where no registry answers as well. Each also has a tag
that names its content, and is built only when there is none of that content.
"""

import hashlib
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

from docker.errors import DockerException

from sandbox_images import root_image
from sandbox_images.build_host import BuildHost, this_machine
from sandbox_images.catalogue import context_of, entry_of, load
from sandbox_images.engine import BuildFailed, Engine

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCES = ("service", "workstead", "migrations", "sandbox_images")
Context = dict[str, tuple[bytes, int]]


def contexts() -> dict[str, Context]:
    """Return the build context of each image: path → (bytes, mode)."""
    service = context_of(HERE / "service")
    for name in SOURCES:
        service |= {f"src/{name}/{path}": entry for path, entry in context_of(ROOT / name).items()}
    service |= _metadata()
    runtime = context_of(HERE / "runtime") | {"requirements.lock": entry_of(ROOT / "requirements.lock")}
    return {"postgres": context_of(HERE / "postgres"), "runtime": runtime, "service": service}


def build(engine: Engine, host: BuildHost) -> dict[str, str]:
    """Build what is missing; return the tag of each image. Raises BuildFailed."""
    _, root = root_image.ensure(engine, load().root)
    context, tags = contexts(), dict[str, str]()
    for name, parent in (("postgres", root), ("runtime", _base(engine, root)), ("service", None)):
        tags[name] = _build_one(engine, name, parent or tags["runtime"], context[name], host)
    return tags


def content(parent: str, context: Mapping[str, tuple[bytes, int]]) -> str:
    digest = hashlib.sha256(parent.encode())
    for path, (body, mode) in sorted(context.items()):
        digest.update(f"\n{path} {mode:o} {hashlib.sha256(body).hexdigest()}".encode())
    return digest.hexdigest()[:16]


def _metadata() -> Context:
    """What an installed distribution says of itself; the sources lie there as they are, nothing is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    return {f"src/{project['name']}-{project['version']}.dist-info/METADATA": (text.encode(), 0o644)}


def _base(engine: Engine, root: str) -> str:
    tag = load().images["base"].tag(root)
    if engine.image_id(tag) is None:
        raise BuildFailed(f"there is no {tag}: make images")
    return tag


def _build_one(engine: Engine, name: str, parent: str, context: Context, host: BuildHost) -> str:
    tag = f"workstead/{name}:{content(parent, context)}"
    if engine.image_id(tag) is None:
        started = time.monotonic()
        whole = context | {path: (body, 0o644) for path, body in host.files.items()}
        try:
            engine.build(whole, tag, {"PARENT": parent, **host.proxies}, {})
        finally:
            engine.prune_stages()
        print(f"built {tag} in {time.monotonic() - started:.0f} s", file=sys.stderr)
    engine.tag(tag, f"workstead/{name}:local")
    return tag


def main() -> int:
    try:
        build(Engine(), this_machine())
    except (BuildFailed, DockerException) as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

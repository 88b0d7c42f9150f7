"""Builds the sandbox images that are missing, parents first, under tags that name their content.

``python sandbox_images/build.py [NAME …] [--all] [--print]``; without names and ``--all`` those on demand are left out. The resolved table goes to ``.local/images.json``. Images carry
the labels ``org.workstead.image`` and ``org.workstead.content``, so that a host finds them by name without that file.
"""

import argparse
import fcntl
import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from docker.errors import DockerException

from sandbox_images import root_image
from sandbox_images.build_host import BuildHost, this_machine
from sandbox_images.catalogue import CONTENT_LABEL, HERE, NAME_LABEL, ROOT, Catalogue, Image, context_of, load
from sandbox_images.engine import BuildFailed, Engine

LOCAL = HERE.parent / ".local"

Row = dict[str, str | None]
Table = dict[str, Row]


def build(engine: Engine, catalogue: Catalogue, host: BuildHost, names: Sequence[str] = ()) -> Table:
    """Make what is missing and return {name: {tag, id}}. Raises BuildFailed, ValueError for an unknown name."""
    wanted = catalogue.ordered(names)
    origin, root_tag = root_image.ensure(engine, catalogue.root)
    table: Table = {ROOT: {"tag": root_tag, "id": engine.image_id(root_tag), "from": origin}}
    for image in wanted:
        parent_tag = str(table[image.parent]["tag"])
        tag = image.tag(parent_tag)
        table[image.name] = {"tag": tag, "id": engine.image_id(tag) or build_one(engine, image, parent_tag, host)}
    return table


def resolve(engine: Engine, catalogue: Catalogue, names: Sequence[str] = ()) -> Table:
    """The same table without making anything; ``id`` is null for what is missing."""
    found = root_image.existing(engine, catalogue.root)
    if found is None:
        return {}
    table: Table = {ROOT: {"tag": found[1], "id": engine.image_id(found[1]), "from": found[0]}}
    for image in catalogue.ordered(names):
        tag = image.tag(str(table[image.parent]["tag"]))
        table[image.name] = {"tag": tag, "id": engine.image_id(tag)}
    return table


def build_one(engine: Engine, image: Image, parent_tag: str, host: BuildHost) -> str:
    """Build one image on its parent; return its id. Raises BuildFailed."""
    started = time.monotonic()
    tag = image.tag(parent_tag)
    context = context_of(image.folder) | {name: (body, 0o644) for name, body in host.files.items()}
    labels = {NAME_LABEL: image.name, CONTENT_LABEL: image.content(parent_tag)}
    try:
        built = engine.build(context, tag, {"PARENT": parent_tag, **host.proxies}, labels)
    finally:
        engine.prune_stages()
    print(f"built {tag} in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return built


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="build the sandbox images that are missing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these and their parents")
    parser.add_argument("--all", action="store_true", help="those on demand as well")
    parser.add_argument("--print", action="store_true", help="build nothing, print the table")
    chosen = parser.parse_args(argv)
    catalogue = load()
    names = list(catalogue.images) if chosen.all else chosen.names
    try:
        engine = Engine()
        if chosen.print:
            print(json.dumps(resolve(engine, catalogue, names), indent=2))
            return 0
        with _only_one():
            _record(build(engine, catalogue, this_machine(), names))
    except (BuildFailed, DockerException, ValueError) as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


def _record(table: Table) -> None:
    target = LOCAL / "images.json"
    known: Table = json.loads(target.read_text()) if target.is_file() else {}
    fresh = target.with_suffix(".new")
    fresh.write_text(json.dumps(known | table, indent=2) + "\n")
    fresh.replace(target)


@contextmanager
def _only_one() -> Generator[None]:
    """Two builds at a time would make the same image twice."""
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())

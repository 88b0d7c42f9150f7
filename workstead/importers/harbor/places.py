"""Where a task works: which of its folders are below our only writable one, and which files the image would have there.

A sandbox has ``/workspace`` to write in, and what the image has there is covered. A folder elsewhere (``/app``) counts as
``/workspace/app`` where the image has it as a link, which the operator says.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from workstead.importers.harbor.dockerfile import Copy, Dockerfile

WORKSPACE = "/workspace"
MAX_ROOTS = 16
_PATH = re.compile(r"(?<![\w.:/~<$}-])/[A-Za-z0-9_.][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_.][A-Za-z0-9._+-]*)*/?")
_WRITTEN = frozenset(
    {
        *("app", "root", "home", "data", "srv", "mnt", "var", "opt", "work", "code", "repo", "src", "project"),
        *("testbed", "output", "outputs", "input", "inputs", "workdir", "build", "git", "www", "results"),
    }
)
"""Folders of a root that tasks write to; others of a root are the system's or ours, or no folders at all."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A file or folder of the build's context and where it belongs below the workspace."""

    source: str
    target: str
    into: bool
    """``target`` is a folder that a single file keeps its name in."""


@dataclass(frozen=True, slots=True)
class Places:
    links: tuple[str, ...]

    def below(self, path: str) -> str | None:
        """Return an absolute path as one below the workspace ("" is the workspace itself); null: it is elsewhere."""
        path = posixpath.normpath(path)
        if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
            return path[len(WORKSPACE) + 1 :]
        linked = any(path == link or path.startswith(f"{link}/") for link in self.links)
        return path[1:] if linked else None

    def troubles(self, dockerfile: Dockerfile, texts: Iterable[str]) -> Iterator[str]:
        """Yield why the task cannot run in a sandbox whose root is read-only."""
        workdir = dockerfile.workdir
        if workdir != "/" and self.below(workdir) is None:
            yield _writable(workdir, "is where the image works")
        for top in sorted({_top(path) for text in texts for path in mentioned(text)} - {_top(workdir)}):
            if top[1:] in _WRITTEN and not any(link == top or link.startswith(f"{top}/") for link in self.links):
                yield _writable(top, "is named by tests or instruction")
        for copy in dockerfile.copies:
            if copy.why_not and self.below(copy.target) is not None:
                yield f"a COPY or ADD to {copy.target[:200]!r}, which the workspace covers: it {copy.why_not}"

    def copied(self, dockerfile: Dockerfile) -> Iterator[Placed]:
        """Yield what has to be a visible file, since the workspace covers where the image has it."""
        for copy in dockerfile.copies:
            target = self.below(copy.target)
            if target is not None and not copy.why_not:
                yield from (Placed(s, target, _into(copy, target)) for s in copy.sources)

    def roots(self, dockerfile: Dockerfile, texts: Iterable[str], visible: Iterable[str]) -> list[str]:
        """Return the folders to deliver: those that are named, those of visible files, and the working directory."""
        found = {link[1:] for link in self.links}
        for path in (dockerfile.workdir, *(path for text in texts for path in mentioned(text))):
            below = self.below(path)
            if below and not any(below == link[1:] or below.startswith(link) for link in self.links):
                found |= set(_folder(below, is_folder=path == dockerfile.workdir))
        found |= {path.split("/")[0] for path in visible if "/" in path}
        return sorted(_outermost(found | ({"output"} if not found else set())))


def mentioned(text: str) -> set[str]:
    """Return the absolute paths that a text names."""
    return {posixpath.normpath(match[0].rstrip(".")) for match in _PATH.finditer(text)}


def loose(places: Places, texts: Iterable[str]) -> list[str]:
    """Return the files that are named directly in the workspace, where nothing but folders is delivered."""
    below = (places.below(path) for text in texts for path in mentioned(text))
    return sorted({path for path in below if path and "/" not in path and "." in path.strip(".")})


def _into(copy: Copy, target: str) -> bool:
    return copy.target.endswith("/") or target == ""


def _folder(below: str, *, is_folder: bool) -> Iterator[str]:
    first, _, rest = below.partition("/")
    if rest or is_folder or "." not in first.strip("."):
        yield first


def _outermost(roots: set[str]) -> set[str]:
    return {root for root in roots if not any(root.startswith(f"{other}/") for other in roots)}


def _top(path: str) -> str:
    return "/" + path.lstrip("/").partition("/")[0]


def _writable(folder: str, why: str) -> str:
    return f"a writable {folder[:200]!r}, which {why}: an image with a link there, and option linked, make it one"

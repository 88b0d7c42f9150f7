"""Previews: who holds a capability may read the files of one deliverable or reference, for a while.

A capability is sealed, so that its holder learns nothing from it: raters do not know which run they look at.
"""

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from service.domain.artifacts import EntryKind
from service.domain.errors import NotFound
from service.store import artifacts, tasks
from service.store.clock import now
from service.store.database import Tx
from service.store.secret_box import SecretBox, SecretUnreadable

PREFIX = "wsp_"
"""Of every capability: access logs mask what follows it."""
LIVES = timedelta(hours=2)
INDEX = "index.html"
_CONTEXT = "preview"
_ENDINGS = frozenset({"html", "htm", "xhtml", "svg"})
_MOST_CHARS = 8192
_MOST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Tree:
    """The files that a capability opens."""

    project_id: str
    kind: Literal["deliverable", "reference", "inputs"]
    id: str
    """Of the run, or of the task: ``reference`` is among its hidden files, ``inputs`` are the visible ones."""
    prefix: str = ""
    """Only files whose paths begin so."""
    entry: str = ""
    """Path of the document that is opened first: see :func:`address`."""


@dataclass(frozen=True, slots=True)
class PreviewFile:
    path: str
    sha256: str
    size_bytes: int


def address(tree: Tree) -> str:
    """Return what the tree's entry is called in URLs: its folders by number, since their names may tell too much.

    A document finds its parts from there all the same, whether it goes down, up or to its neighbours.
    """
    ending = tree.entry.rpartition(".")[2].lower()
    above = range(tree.entry.count("/"))
    return "".join(f"~{n}/" for n in above) + f"~.{ending if ending in _ENDINGS else 'html'}"


def _real(tree: Tree, path: str) -> str:
    """Return the path that a URL's stands for."""
    if tree.entry and path == address(tree):
        return tree.entry
    parts, folders = path.split("/"), tree.entry.split("/")[:-1]
    for n, folder in enumerate(folders):
        if n >= len(parts) - 1 or parts[n] != f"~{n}":
            break
        parts[n] = folder
    return "/".join(parts)


async def grant(tx: Tx, box: SecretBox, tree: Tree, lives: timedelta = LIVES) -> tuple[str, datetime]:
    """Return a capability for the tree's files, and when it is over."""
    until = await now(tx) + min(lives, LIVES)
    said = [tree.project_id, tree.kind, tree.id, tree.prefix, tree.entry, until.timestamp()]
    sealed = box.seal(json.dumps(said).encode(), _CONTEXT)
    return PREFIX + base64.urlsafe_b64encode(sealed).decode().rstrip("="), until


async def opened(tx: Tx, box: SecretBox, capability: str) -> Tree:
    """Return what the capability opens. Raises NotFound("no_preview") for one that is not ours, or over."""
    tree, until = _read(box, capability)
    if (await now(tx)).timestamp() >= until:
        raise NotFound("no_preview", "this preview is over: ask for it again")
    return tree


async def find(tx: Tx, tree: Tree, path: str) -> PreviewFile:
    """Return the file that a document of the tree calls ``path``. Raises NotFound("no_preview")."""
    if len(path) > _MOST_PATH:
        raise NotFound("no_preview")
    wanted = _real(tree, path + INDEX if path == "" or path.endswith("/") else path)
    # Names in lists have '%' encoded; in a URL it is encoded once, and so is bare here.
    for name in dict.fromkeys((wanted, wanted.replace("%", "%25"))):
        found = await (_delivered if tree.kind == "deliverable" else _of_task)(tx, tree, name)
        if found is not None and found.path.startswith(tree.prefix):
            return found
    raise NotFound("no_preview")


def _read(box: SecretBox, capability: str) -> tuple[Tree, float]:
    body = capability.removeprefix(PREFIX)
    if len(capability) > _MOST_CHARS or body == capability or not body.isascii():
        raise NotFound("no_preview")
    try:
        sealed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        project_id, kind, id, prefix, entry, until = json.loads(box.open(sealed, _CONTEXT))
    except (SecretUnreadable, ValueError) as error:
        raise NotFound("no_preview") from error
    return Tree(project_id, kind, id, prefix, entry), until


async def _delivered(tx: Tx, tree: Tree, path: str) -> PreviewFile | None:
    row = await artifacts.by_path(tx, tree.id, path)
    if row is None or row.kind != EntryKind.FILE or row.sha256 is None:
        return None
    return PreviewFile(row.path, row.sha256, row.size_bytes)


async def _of_task(tx: Tx, tree: Tree, path: str) -> PreviewFile | None:
    task = await tasks.get(tx, tree.project_id, tree.id)
    if task is None:
        return None
    files = task.manifest.hidden if tree.kind == "reference" else task.manifest.visible
    named = next((f for f in files if f.path == path), None)
    return None if named is None else PreviewFile(named.path, named.sha256, named.size_bytes)

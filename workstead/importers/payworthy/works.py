"""What solvers delivered: files of the source beside a posting, to be graded with no run of ours."""

from pathlib import Path, PurePosixPath
from typing import Any

from workstead.importers.drafts import Draft
from workstead.importers.files import Contents, Entry, is_folder, name_trouble
from workstead.importers.trees import take_tree

MAX_FACTS = 1 << 20
"""Bytes of what only the client knows; the service takes no more."""


def inside(base: Path, relative: str) -> Path | None:
    """Return what ``relative`` names below ``base``; null if it leads out of it, also by a link on the way."""
    parts = PurePosixPath(relative).parts
    if not parts or relative.startswith("/") or any(part == ".." or name_trouble(part) for part in parts):
        return None
    path = base
    for part in parts:
        path = path / part
        if path.is_symlink():
            return None
    return path


def work_of(base: Path, relative: str, draft: Draft, contents: Contents, root: Path) -> list[dict[str, Any]]:
    """Return the files that were delivered, with paths as a client gets them; none, and a note, where there is nothing.

    A work that cannot be used does not cost the posting. Raises OSError.
    """
    path = inside(base, relative)
    if path is None or not path.exists():
        draft.note("no_deliverable", relative, "is not there, or lies outside the source")
        return []
    if path.is_file():
        return [contents.take(Entry(path.name, path), path.name, root)]
    if not is_folder(path):
        draft.note("no_deliverable", relative, "is neither a file nor a folder")
        return []
    apart = Draft(draft.key)
    refs = take_tree(path, apart, contents, root)
    for problem in apart.problems:
        draft.note("bad_deliverable", problem["where"], problem["detail"])
    return [] if apart.problems else refs


def facts_file(base: Path, relative: str, draft: Draft) -> bytes | None:
    """Return the bytes of the file with the client's facts; null with a note where there is no such text."""
    path = inside(base, relative)
    if path is None or not path.is_file():
        draft.note("bad_facts", relative, "is not there, no file, or lies outside the source")
        return None
    with path.open("rb") as file:
        return file.read(MAX_FACTS + 1)

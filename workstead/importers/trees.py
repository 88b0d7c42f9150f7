"""A folder of a source as files of a task."""

from pathlib import Path
from typing import Any

from workstead.importers.drafts import Draft
from workstead.importers.files import MAX_FILES, Contents, is_folder, walk


def take_tree(folder: Path, draft: Draft, contents: Contents, root: Path, prefix: str = "") -> list[dict[str, Any]]:
    """Return a reference, below ``prefix``, of every file in ``folder``; a folder that is not there has none.

    Links, special files and odd names quarantine the item, and the rest is still looked at. Raises OSError.
    """
    refs: list[dict[str, Any]] = []
    if not is_folder(folder):
        if folder.is_symlink() or folder.exists():
            draft.quarantine("bad_file", folder.name, "is not a folder")
        return refs
    for entry in walk(folder):
        if entry.trouble is not None:
            draft.quarantine("bad_file", prefix + entry.path, entry.trouble)
        elif len(refs) == MAX_FILES:
            draft.quarantine("too_many_files", prefix or folder.name, f"more than {MAX_FILES} files")
            break
        else:
            refs.append(contents.take(entry, prefix + entry.path, root))
    return refs

"""The reference solution: a program that the oracle runs in the task's own image."""

import os
import re
import shlex
from pathlib import Path
from typing import Any

from workstead.importers.drafts import Draft
from workstead.importers.files import Contents, Entry
from workstead.importers.trees import take_tree
from workstead.task_dir import read_text

SOLVE = "solution/solve.sh"
"""What scaffold kind ``oracle`` runs."""
PLACE = "/workspace/.home/solution"
"""Where it has the files below ``solution/`` while it runs."""
_ELSEWHERE = re.compile(r"(?<![\w./-])/(?:solution|oracle)(?=[/\s\"']|\Z)")


def solution_files(folder: Path, contents: Contents, root: Path, workdir: str, draft: Draft) -> list[dict[str, Any]]:
    """Return the hidden files of the solution; none, with a remark, where there is no program. Raises OSError."""
    older = folder / "solution.sh"
    apart = Draft(draft.key)
    refs = take_tree(folder / "solution", apart, contents, root, "solution/")
    script = folder / SOLVE
    if not refs and os.path.lexists(older) and not older.is_symlink() and older.is_file():
        refs, script = [contents.take(Entry(older.name, older), SOLVE, root)], older
    problems: list[str] = []
    text = read_text(script, script.name, problems) if any(ref["path"] == SOLVE for ref in refs) else None
    if text is None or problems or apart.problems:
        why = "; ".join([*problems, *(f"{p['where']}: {p['detail']}" for p in apart.problems)])
        draft.note("no_reference_solution", SOLVE, why or "is missing; the oracle cannot run")
        return []
    moved = _started(_ELSEWHERE.sub(PLACE, text), workdir)
    if moved != text:
        draft.note("solution_moved", SOLVE, f"starts in {workdir} and has its own files at {PLACE}")
        refs = [ref for ref in refs if ref["path"] != SOLVE]
        refs.append(contents.make(SOLVE, moved.encode()))
    return refs


def _started(text: str, workdir: str) -> str:
    """A program of ours starts in /workspace, wherever the image would have it start."""
    if workdir == "/workspace":
        return text
    shebang, rest = text.split("\n", 1) if text.startswith("#!") and "\n" in text else ("", text)
    quoted = shlex.quote(workdir)
    start = f"mkdir -p {quoted} && cd {quoted} || exit 1\n"
    return f"{shebang}\n{start}{rest}" if shebang else start + rest

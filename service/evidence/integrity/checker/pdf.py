"""PDF, by poppler."""

import re
from pathlib import Path

from service.evidence.integrity.checker.findings import Seen, Trouble
from service.evidence.integrity.checker.programs import run

_PAGES = re.compile(r"^Pages:\s+(\d{1,9})$", re.MULTILINE)
_TAIL = 2048


def read_pdf(path: Path, _: str) -> Seen:
    done = run(["pdfinfo", path], path.parent)
    pages = _PAGES.search(done.stdout)
    if "Incorrect password" in done.stderr:
        raise Trouble("encrypted", "the document needs a password")
    whole = _has_end(path)
    if done.code != 0 or pages is None or int(pages.group(1)) == 0:
        raise Trouble("cannot_open" if whole else "truncated", done.complaint or "no pages")
    seen = Seen({"pages": int(pages.group(1))})
    if not whole:
        seen.problems.append(("truncated", "the end mark is missing"))
    elif "Syntax Error" in done.stderr:
        seen.problems.append(("malformed", done.complaint))
    return seen


def _has_end(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        return b"%%EOF" in file.read()

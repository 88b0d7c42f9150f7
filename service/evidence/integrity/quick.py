"""What needs no room: nothing to open, too much to open, or small plain text, which is decoded here.

Decoding UTF-8 is not parsing; whatever has a structure is opened in a room only.
"""

from pathlib import Path

from service.domain.artifacts import ArtifactEntry
from service.domain.integrity import Facts, FileReport, Problem, ProblemType

MAX_FILE = 256 << 20
"""Bytes of the largest file that is opened."""
MAX_TEXT = 1 << 20
PLAIN = frozenset(("txt", "md", "markdown", "rst", "log", "text"))
_MAY_BE_EMPTY = frozenset(("__init__.py", ".gitkeep", ".keep", ".nojekyll", "py.typed"))


def claim(path: str) -> str | None:
    """Return the extension of a name in lower case, if it is one."""
    stem, dot, ext = path.rpartition("/")[2].rpartition(".")
    usual = bool(dot and stem) and 0 < len(ext) <= 16 and ext.isascii() and ext.isalnum()
    return ext.lower() if usual else None


def begun(entry: ArtifactEntry) -> FileReport:
    """Return what is known of a file before anybody opened it."""
    return FileReport(path=entry.path, size_bytes=entry.size_bytes, claims=claim(entry.path))


def judged_here(report: FileReport, content: Path) -> FileReport | None:
    """Return the finished report of a file that needs no room; null for one that does. Raises OSError."""
    if report.size_bytes == 0:
        named = report.path.rpartition("/")[2] in _MAY_BE_EMPTY
        return with_problem(report, ProblemType.EMPTY, "no bytes", opens=False) if not named else report
    if report.size_bytes > MAX_FILE:
        return with_problem(report, ProblemType.TOO_LARGE_TO_CHECK, f"more than {MAX_FILE >> 20} MiB", opens=None)
    if report.claims in PLAIN and report.size_bytes <= MAX_TEXT:
        return _plain(report, content.read_bytes())
    return None


def with_problem(report: FileReport, kind: ProblemType, detail: str, *, opens: bool | None) -> FileReport:
    found = Problem(type=kind, detail=detail)
    return report.model_copy(update={"opens": opens, "problems": (*report.problems, found)})


def plain_text(data: bytes) -> str | None:
    """Return what is UTF-8 text and nothing else; null for what may be something that only looks like it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Other things can be valid UTF-8 too: those that begin like a document are looked at by those who know.
    if "\x00" in text or text.lstrip("\ufeff \t\r\n").startswith(("%PDF", "<", "{\\rtf", "PK\x03")):
        return None
    return text


def _plain(report: FileReport, data: bytes) -> FileReport | None:
    text = plain_text(data)
    if text is None:
        return None
    rows = text.count("\n") + (not text.endswith("\n"))
    return report.model_copy(update={"sniffed": "text", "opens": True, "facts": Facts(rows=rows, encoding="utf-8")})

"""What an agent is told about a JobBench task, and whether the files that the task names are there."""

import re
import unicodedata
from collections.abc import Collection, Iterator

INSTRUCTION = """\
Your job is in the folder /workspace/task_folder. Deliver your result in the folder /workspace/output.

What to do:
1. Read /workspace/task_folder/TASK_INSTRUCTIONS.txt.
2. Read the reference files that it lists; they lie in /workspace/task_folder as well.
3. Do the work that it asks for.
4. Save the finished deliverables, and only those, in /workspace/output.

Rules:
- Every reference file that you are given is in /workspace/task_folder. Do not wait for further ones.
- Keep notes, scripts and intermediate results out of /workspace/output. A database or workbook that you were asked to \
change counts as a deliverable: put the changed copy there.
- Work below /workspace only. Where the network allows it, you may search online.
- Where sources contradict each other, weigh them, decide, and state in the deliverable what you chose and why.
- Where a file cannot be read directly, use a tool or write a program that reads it.
"""

_EXTENSIONS = (
    *(
        "csv",
        "tsv",
        "xlsx",
        "xls",
        "xlsm",
        "ods",
        "docx",
        "doc",
        "odt",
        "pdf",
        "pptx",
        "ppt",
        "txt",
        "md",
        "json",
        "jsonl",
    ),
    *("xml", "html", "htm", "yaml", "yml", "sql", "db", "sqlite", "sqlite3", "ipynb", "py", "r", "log", "eml", "rtf"),
    *("png", "jpg", "jpeg", "gif", "svg", "bmp", "tif", "tiff", "webp", "geojson", "shp", "zip", "mp3", "mp4", "wav"),
)
_ENDS = r"\.(?:" + "|".join(_EXTENSIONS) + r")"
_QUOTED = re.compile(rf"[`\"'*]([^`\"'*\n]{{1,200}}?{_ENDS})[`\"'*]", re.IGNORECASE)
_LISTED = re.compile(
    rf"^\s*(?:[-*]|\d{{1,3}}[.)])\s+([^\n:`\"]{{1,200}}?{_ENDS})(?=[\s:,;)-]|$)", re.IGNORECASE | re.MULTILINE
)
_TYPOGRAPHY = str.maketrans(dict.fromkeys("\u2018\u2019\u201c\u201d", '"') | dict.fromkeys("\u2022\u2013\u2014", "-"))
_HEADING = re.compile(r"reference files", re.IGNORECASE)


def named_files(text: str) -> Iterator[str]:
    """Yield the file names in the part of ``TASK_INSTRUCTIONS.txt`` that lists reference files, each once."""
    text = text.translate(_TYPOGRAPHY)
    heading = _HEADING.search(text)
    part = text[heading.end() :] if heading else ""
    part = re.split(r"\n\s*(?:#+ |[A-Z][A-Z &/-]{5,}\n|\*\*(?:deliver|output))", part, maxsplit=1, flags=re.IGNORECASE)[
        0
    ]
    found = [m[1].strip() for pattern in (_QUOTED, _LISTED) for m in pattern.finditer(part)]
    yield from dict.fromkeys(found)


def missing_files(text: str, present: Collection[str]) -> list[str]:
    """Return the named files that are not among ``present`` (paths); only the last part of a path is compared."""
    there = {_base(path) for path in present}
    return [name for name in named_files(text) if _base(name) not in there]


def _base(path: str) -> str:
    # The same name may be written with composed or decomposed accents in the text and on the disk.
    return unicodedata.normalize("NFC", path).translate(_TYPOGRAPHY).rpartition("/")[2].casefold()

"""Office documents as archives of XML: parts that must be there, well-formed, whole; counts that people ask for.

Whether an office program would like every attribute is not asked: that needs one. Old binary formats: see ole.
"""

import posixpath
import zipfile
from pathlib import Path

from service.evidence.integrity.checker.findings import Seen, Trouble
from service.evidence.integrity.checker.markup import walk
from service.evidence.integrity.checker.zips import inflate_all, opened

MAX_SHEETS_COUNTED = 50
_MAIN = {"docx": "word/document.xml", "xlsx": "xl/workbook.xml", "pptx": "ppt/presentation.xml"}
_TYPES = "[Content_Types].xml"


def read_office(path: Path, kind: str) -> Seen:
    """docx, xlsx, pptx."""
    with opened(path) as archive:
        names = frozenset(archive.namelist())
        for needed in (_TYPES, _MAIN[kind]):
            if needed not in names:
                raise Trouble("cannot_open", f"no part {needed}")
        inflate_all(archive, path.stat().st_size)
        _check_xml(archive, _TYPES)
        seen = Seen()
        _check_targets(archive, _MAIN[kind], names, seen)
        seen.facts |= _COUNTS[kind](archive, names)
        return seen


def read_open_document(path: Path, kind: str) -> Seen:
    """odt, ods, odp."""
    with opened(path) as archive:
        names = frozenset(archive.namelist())
        if "content.xml" not in names:
            raise Trouble("cannot_open", "no part content.xml")
        inflate_all(archive, path.stat().st_size)
        if "META-INF/manifest.xml" in names:
            with archive.open("META-INF/manifest.xml") as file:
                if walk(file)["encryption-data"]:
                    raise Trouble("encrypted", "the content needs a password")
        with archive.open("content.xml") as file:
            elements = walk(file)
    counted = {"ods": ("sheets", "table"), "odp": ("slides", "page")}.get(kind)
    return Seen({counted[0]: elements[counted[1]]} if counted else {})


def read_epub(path: Path, _: str) -> Seen:
    with opened(path) as archive:
        if "META-INF/container.xml" not in archive.namelist():
            raise Trouble("cannot_open", "no part META-INF/container.xml")
        inflate_all(archive, path.stat().st_size)
        _check_xml(archive, "META-INF/container.xml")
        return Seen({"entries": len(archive.infolist())})


def _check_xml(archive: zipfile.ZipFile, name: str) -> None:
    with archive.open(name) as file:
        walk(file)


def _check_targets(archive: zipfile.ZipFile, main: str, names: frozenset[str], seen: Seen) -> None:
    """Every internal part that the main part refers to must be there: readers call a missing one a broken document."""
    folder, name = posixpath.split(main)
    relations = f"{folder}/_rels/{name}.rels"
    if relations not in names:
        return
    missing: list[str] = []

    def start(_: str, attributes: dict[str, str]) -> None:
        target = attributes.get("Target", "").partition("#")[0]
        if target and attributes.get("TargetMode") != "External":
            part = posixpath.normpath(posixpath.join("/" + folder, target)).lstrip("/")
            if part not in names:
                missing.append(part)

    with archive.open(relations) as file:
        walk(file, start)
    if missing:
        seen.problems.append(("malformed", f"{len(missing)} parts are missing, the first is {missing[0][:120]}"))


def _pages(archive: zipfile.ZipFile, _: frozenset[str]) -> dict[str, int]:
    with archive.open(_MAIN["docx"]) as file:
        elements = walk(file)
    return {"entries": elements["p"]}


def _sheets(archive: zipfile.ZipFile, names: frozenset[str]) -> dict[str, int]:
    with archive.open(_MAIN["xlsx"]) as file:
        sheets = walk(file)["sheet"]
    rows = 0
    parts = sorted(n for n in names if n.startswith("xl/worksheets/") and n.endswith(".xml"))
    for name in parts[:MAX_SHEETS_COUNTED]:
        with archive.open(name) as file:
            rows += walk(file)["row"]
    return {"sheets": sheets, "rows": rows}


def _slides(archive: zipfile.ZipFile, names: frozenset[str]) -> dict[str, int]:
    with archive.open(_MAIN["pptx"]) as file:
        slides = walk(file)["sldId"]
    for name in sorted(n for n in names if n.startswith("ppt/slides/") and n.endswith(".xml")):
        _check_xml(archive, name)
    return {"slides": slides}


_COUNTS = {"docx": _pages, "xlsx": _sheets, "pptx": _slides}

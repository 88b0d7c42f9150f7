"""A workbook's parts that are not cells: sheets in order, names, strings, formats, and why it cannot be recalculated."""

import re
from dataclasses import dataclass, field
from typing import TypeVar

from service.evidence.extraction.inside.contract import Failed
from service.evidence.extraction.inside.packages import Node, Package, local, related
from service.evidence.extraction.inside.readers import styles
from service.evidence.extraction.inside.readers.cells import is_date_format

T = TypeVar("T")
MAIN = "xl/workbook.xml"
MAX_STRINGS = 3_000_000
_TEXTS = re.compile(r'"[^"]*"')
_VOLATILE = re.compile(
    r"(?<![\w.])(NOW|TODAY|RAND|RANDBETWEEN|RANDARRAY|OFFSET|INDIRECT|INFO|CELL|RTD|WEBSERVICE|DDE)\s*\(", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sheet:
    name: str
    part: str
    is_hidden: bool


@dataclass(slots=True)
class Look:
    """Of the cells of one format."""

    is_date: bool = False
    is_hidden: bool = False
    """White on white, or a format that shows nothing."""


@dataclass(slots=True)
class Book:
    document: Package
    sheets: list[Sheet] = field(default_factory=list[Sheet])
    strings: list[str] = field(default_factory=list[str])
    looks: list[Look] = field(default_factory=list[Look])
    names: list[str] = field(default_factory=list[str])
    """Defined names, a line each."""
    since_1904: bool = False

    def obstacle(self) -> str | None:
        """Return what makes a recalculation impossible or meaningless, as far as parts tell."""
        if any(name.startswith("xl/externalLinks/") for name in self.document.names):
            return "external links"
        macros = ("xl/vbaProject.bin", "xl/macrosheets/", "xl/dialogsheets/")
        return "macros" if any(name.startswith(macros) for name in self.document.names) else None


def volatile(formula: str) -> str | None:
    """Return the function that gives another value every time, or depends on where it runs."""
    found = _VOLATILE.search(_TEXTS.sub('""', formula))
    return found.group(1).upper() if found else None


def open_book(document: Package) -> Book:
    """Raises Failed, Trouble."""
    main = document.main(MAIN)
    top, relations = document.tree(main), document.relations(main)
    book = Book(document)
    for one in top.all("sheet"):
        word, part = relations.get(related(one.attributes), ("", ""))
        if word in ("worksheet", "chartsheet") and part in document.names:
            book.sheets.append(Sheet(one.get("name")[:200], part, one.get("state") in ("hidden", "veryHidden")))
    properties = top.child("workbookPr")
    book.since_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    book.names = [f"{one.get('name')} = {one.text[:500]}" for one in top.all("definedName")]
    for part in document.related(main, "sharedStrings"):
        book.strings = _strings(document, part)
    for part in document.related(main, "styles"):
        book.looks = _looks(document.tree(part))
    return book


def _strings(document: Package, part: str) -> list[str]:
    found: list[str] = []
    pieces: list[str] = []
    reading, phonetic = False, False

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal reading, phonetic
        word = local(name)
        reading = word == "t" and not phonetic
        phonetic = phonetic or word == "rPh"

    def text(data: str) -> None:
        if reading:
            pieces.append(data)

    def end(name: str) -> None:
        nonlocal reading, phonetic
        reading = False
        word = local(name)
        phonetic = phonetic and word != "rPh"
        if word == "si":
            if len(found) >= MAX_STRINGS:
                raise Failed("bomb", f"more than {MAX_STRINGS} strings")
            found.append("".join(pieces))
            pieces.clear()

    document.walk(part, start, text, end)
    return found


def _looks(top: Node) -> list[Look]:
    codes = {one.get("numFmtId"): one.get("formatCode") for one in top.all("numFmt")}
    inks = [_is_white(font.child("color")) for fonts in top.all("fonts") for font in fonts.children]
    grounds = [fill.find("patternFill", "fgColor") for fills in top.all("fills") for fill in fills.children]
    found: list[Look] = []
    for xf in (xf for xfs in top.all("cellXfs") for xf in xfs.children):
        number = xf.get("numFmtId", "0")
        code = codes.get(number, "")
        white = _at(inks, xf.get("fontId")) is True and _is_bare(_at(grounds, xf.get("fillId")))
        nothing = code.strip() in (";;;", ";;")
        found.append(
            Look(is_date_format(int(number) if number.isdecimal() and len(number) < 9 else 0, code), white or nothing)
        )
    return found


def _is_white(node: Node | None) -> bool:
    if node is None:
        return False
    colour = styles.colour(f"#{node.get('rgb')[-6:].lower()}") if node.get("rgb") else None
    # The first colour of a theme is that of the paper.
    return node.get("theme") == "0" and not node.get("tint") if colour is None else styles.alike(colour, styles.WHITE)


def _is_bare(fill: Node | None) -> bool:
    """Whether nothing but white lies behind a cell."""
    return fill is None or _is_white(fill)


def _at(items: "list[T]", index: str) -> "T | None":
    return items[int(index)] if index.isdecimal() and len(index) < 7 and int(index) < len(items) else None

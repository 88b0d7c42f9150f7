"""One sheet, read cell by cell: a table of what is shown, apart from it what is hidden, and every formula."""

import math
import re
from dataclasses import dataclass, field

from service.evidence.extraction.inside.contract import Failed
from service.evidence.extraction.inside.packages import attribute, local
from service.evidence.extraction.inside.readers.book import Book, Look, Sheet
from service.evidence.extraction.inside.readers.cells import Failure, Value, column, letters, moment, shown
from service.evidence.extraction.inside.readers.formulas import Shared
from service.evidence.extraction.inside.readers.rows import Rows

MAX_CELLS = 2_000_000
"""Of one sheet, with something in them."""
MAX_FORMULAS = 1_000_000
"""Of one sheet."""
WIDEST_GAP = 20
"""Empty columns that are still shown as such; beyond it the column is named."""
CELL_CHARS = 4000
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")
_KEPT = frozenset({"v", "f", "t"})
_NOTED = {"dataValidation": "validation", "conditionalFormatting": "conditional format", "autoFilter": "filter"}
_PLAIN = Look()


@dataclass(frozen=True, slots=True)
class Formula:
    text: str
    """Empty: shared with an earlier cell's."""
    cached: Value | Failure


@dataclass(slots=True)
class SheetText:
    """What a sheet says."""

    table: Rows
    hidden: Rows
    formulas: dict[str, Formula] = field(default_factory=dict[str, Formula])
    """By address, in the file's order."""
    rules: list[str] = field(default_factory=list[str])
    """Validations, conditional formats, filters."""
    cells: int = 0
    last_column: int = 0
    hidden_rows: int = 0
    hidden_columns: set[int] = field(default_factory=set[int])


def read_sheet(book: Book, sheet: Sheet, most: int) -> SheetText:
    """Raises Failed ``bomb``, ``cannot_open``, Trouble."""
    reading = _Reading(book, SheetText(Rows(most), Rows(most // 4)))
    book.document.walk(sheet.part, reading.start, reading.text, reading.end)
    return reading.said


class _Reading:
    """Takes the events of a sheet's part."""

    def __init__(self, book: Book, said: SheetText) -> None:
        self._book = book
        self.said = said
        self._row, self._column = 0, 0
        self._row_is_hidden = False
        self._line: list[str] = []
        self._at = 0
        self._address, self._type, self._look = "", "n", _PLAIN
        self._pieces: dict[str, list[str]] = {}
        self._into: list[str] | None = None
        self._shared = Shared()
        self._shared_as: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        word = local(name)
        if word == "c":
            self._begin_cell(attributes)
        elif word in _KEPT:
            if word == "f" and attribute(attributes, "t") == "shared":
                self._shared_as = attribute(attributes, "si")
            self._into = self._pieces.setdefault(word, [])
        elif word == "row":
            self._row = _number(attribute(attributes, "r")) or self._row + 1
            self._column, self._at, self._line = 0, 0, []
            self._row_is_hidden = attribute(attributes, "hidden") in ("1", "true")
            self.said.hidden_rows += self._row_is_hidden
        elif word == "col" and attribute(attributes, "hidden") in ("1", "true"):
            first, last = _number(attribute(attributes, "min")), _number(attribute(attributes, "max"))
            self.said.hidden_columns |= set(range(first, min(last, 16384) + 1))
        elif word in _NOTED and len(self.said.rules) < 200:
            about = " ".join(
                f"{local(k)}={v[:100]}" for k, v in attributes.items() if local(k) in ("type", "ref", "sqref")
            )
            self.said.rules.append(f"{_NOTED[word]}: {about}")

    def text(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def end(self, name: str) -> None:
        word = local(name)
        if word in _KEPT:
            self._into = None
        elif word == "c":
            self._end_cell()
        elif word == "row" and self._line:
            self.said.table.add(f"{self._row}\t" + "".join(self._line))

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        place = _PLACE.match(attribute(attributes, "r"))
        self._column = column(place.group(1)) if place else self._column + 1
        self._address = f"{letters(self._column)}{self._row}"
        self._type = attribute(attributes, "t", "n")
        style = attribute(attributes, "s")
        number = _number(style)
        self._look = self._book.looks[number] if style and number < len(self._book.looks) else _PLAIN
        self._pieces, self._shared_as = {}, None

    def _end_cell(self) -> None:
        pieces = {word: "".join(found) for word, found in self._pieces.items()}
        if not pieces:
            return
        self.said.cells += 1
        if self.said.cells > MAX_CELLS:
            raise Failed("bomb", f"more than {MAX_CELLS} cells in a sheet")
        value = self._value(pieces)
        if "f" in pieces:
            if self._shared_as is not None:
                pieces["f"] = self._shared.text(self._shared_as, pieces["f"], self._row, self._column)
            if len(self.said.formulas) >= MAX_FORMULAS:
                raise Failed("bomb", f"more than {MAX_FORMULAS} formulas in a sheet")
            self.said.formulas[self._address] = Formula(pieces["f"], value)
        self._show(value)

    def _value(self, pieces: dict[str, str]) -> Value | Failure:
        raw = pieces.get("t" if self._type == "inlineStr" else "v")
        if not raw:  # some writers leave the place of a value empty
            return "" if self._type in ("str", "inlineStr") else None
        if self._type == "s":
            number = _number(raw)
            return self._book.strings[number] if number < len(self._book.strings) else Failure("#string is missing")
        if self._type == "b":
            return raw.strip() in ("1", "true")
        if self._type == "e":
            return Failure(raw[:40])
        if self._type in ("str", "inlineStr", "d"):
            return raw
        try:
            number = float(raw)
        except ValueError:
            return raw
        return number if math.isfinite(number) else raw

    def _show(self, value: Value | Failure) -> None:
        words = self.words(value)
        if not words:
            return
        if self._row_is_hidden or self._look.is_hidden or self._column in self.said.hidden_columns:
            self.said.hidden.add(f"{self._address}: {words}")
            return
        gap = self._column - self._at - (1 if self._at else 0)
        self._line.append(
            f"\t[{letters(self._column)}] " if gap > WIDEST_GAP or gap < 0 else "\t" * (self._column - max(self._at, 1))
        )
        self._line.append(words)
        self._at = self._column
        self.said.last_column = max(self.said.last_column, self._column)

    def words(self, value: Value | Failure) -> str:
        if isinstance(value, float) and self._look.is_date:
            return moment(value, since_1904=self._book.since_1904) or shown(value)
        return "" if value is None else shown(value)[:CELL_CHARS]


def _number(text: str) -> int:
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0

"""A formula that a workbook keeps once for many cells, as each of them has it."""

import re
from dataclasses import dataclass, field

from service.evidence.extraction.inside.readers.cells import column, letters

_PIECES = re.compile(r"""("[^"]*"|'[^']*')""")
"""Texts and names of sheets: nothing in them is a reference."""
_REFERENCE = re.compile(r"(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)([1-9]\d{0,6})(?![\w(.!])")
_MOST = 8192


def moved(formula: str, rows: int, columns: int) -> str:
    """Return the formula as it reads so many cells further down and to the right."""

    def shifted(found: re.Match[str]) -> str:
        fixed_column, name, fixed_row, row = found.groups()
        place = name if fixed_column else letters(column(name) + columns)
        return f"{fixed_column}{place or '#REF!'}{fixed_row}{row if fixed_row else int(row) + rows}"

    pieces = _PIECES.split(formula[:_MOST])
    return "".join(piece if n % 2 else _REFERENCE.sub(shifted, piece) for n, piece in enumerate(pieces))


@dataclass(slots=True)
class Shared:
    """Formulas of a sheet that are kept once, by their number."""

    _first: dict[str, tuple[str, int, int]] = field(default_factory=dict[str, tuple[str, int, int]])

    def text(self, number: str, written: str, row: int, column: int) -> str:
        """Return a cell's formula; empty where its first cell is not known. What is written is kept for the next ones."""
        if written:
            self._first[number] = (written, row, column)
            return written
        first = self._first.get(number)
        return "" if first is None else moved(first[0], row - first[1], column - first[2])

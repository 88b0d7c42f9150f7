"""Tell whether a workbook is the price list as the task wants it: ``python -m demo.desktop.check FILE``."""

import sys
from typing import IO

import openpyxl

EXPECTED = [["item", "price"], ["apple", 1.75], ["pear", 2.25], ["quince", 3.1]]


def cells(file: str | IO[bytes]) -> list[list[object]]:
    return [[cell.value for cell in row] for row in openpyxl.load_workbook(file).worksheets[0].rows]


if __name__ == "__main__":
    if (found := cells(sys.argv[1])) != EXPECTED:
        sys.exit(f"the workbook holds {found}")
    sys.stdout.write("as expected: the workbook has the new price\n")

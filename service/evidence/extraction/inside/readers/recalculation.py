"""What a workbook's formulas give when they are calculated anew, where that can be asked; and whether the file says otherwise."""

from collections.abc import Sequence
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.packages import package
from service.evidence.extraction.inside.readers.book import Book, Sheet, open_book, volatile
from service.evidence.extraction.inside.readers.cells import Failure, Value, same
from service.evidence.extraction.inside.readers.sheets import Formula, SheetText, read_sheet
from service.evidence.integrity.checker.findings import Trouble

BUDGET = 190_000
"""Characters of a workbook, shared between its sheets."""
NEEDED = Failure("#NAME?")
"""What the office program says where it does not know a function."""
Texts = Sequence[tuple[Sheet, SheetText]]


def recalculated(book: Book, texts: Texts, original: Path, out: Output) -> dict[str, SheetText]:
    """Return the sheets that have formulas, by name, calculated anew; none where they were not, which is noted."""
    formulas = [f for _, said in texts for f in said.formulas.values()]
    out.fact("formulas", len(formulas))
    if not formulas:
        return {}
    if missing := sum(f.cached is None for f in formulas):
        out.note(f"{missing} of {len(formulas)} formulas have no cached value")
    reason = book.obstacle() or _volatile(formulas)
    if reason is None and out.office is None:
        reason = "no office program here"
    if reason is not None or out.office is None:
        out.note(f"not recalculated: {reason}")
        return {}
    try:
        found = _read(out.office.convert(original, "recalculated", out), texts)
    except Failed as failed:
        out.note(f"not recalculated: {failed.error}: {failed}"[:500])
        return {}
    except Trouble as trouble:
        out.note(f"not recalculated: {trouble.type}: {trouble}"[:500])
        return {}
    out.fact("differences", sum(_differences(said, found.get(sheet.name)) for sheet, said in texts))
    return found


def differs(cached: Value | Failure, found: Value | Failure) -> bool:
    """Whether a remembered value is contradicted. Where nothing is remembered, only an error is news."""
    if found == NEEDED:
        return False
    return isinstance(found, Failure) if cached is None else not same(cached, found)


def _volatile(formulas: Sequence[Formula]) -> str | None:
    return next((f"volatile function {name}" for f in formulas if (name := volatile(f.text))), None)


def _read(path: Path, texts: Texts) -> dict[str, SheetText]:
    wanted = {sheet.name: said for sheet, said in texts if said.formulas}
    with package(path) as document:
        book = open_book(document)
        sheets = [sheet for sheet in book.sheets if sheet.name in wanted]
        return {sheet.name: read_sheet(book, sheet, BUDGET) for sheet in sheets}


def _differences(said: SheetText, found: SheetText | None) -> int:
    anew = found.formulas if found else {}
    return sum(differs(f.cached, anew[at].cached) for at, f in said.formulas.items() if at in anew)

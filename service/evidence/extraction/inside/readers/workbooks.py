"""Workbooks: each sheet as a table; each formula with the value that the file remembers and the one that is found anew; those
that differ; what is hidden; charts; pictures of the pages.
"""

from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.packages import core_facts, enclosed, package
from service.evidence.extraction.inside.readers.book import Book, Sheet, open_book, volatile
from service.evidence.extraction.inside.readers.cells import Failure, Value, letters, same, shown
from service.evidence.extraction.inside.readers.charts import chart_text
from service.evidence.extraction.inside.readers.office_pages import embed, show_pages
from service.evidence.extraction.inside.readers.rows import Rows
from service.evidence.extraction.inside.readers.sheets import Formula, SheetText, read_sheet
from service.evidence.integrity.checker.findings import Trouble

BUDGET = 190_000
"""Characters of a workbook, shared between its sheets."""
MAX_SHEETS = 400
NAMED_COLUMNS = 200
_NEEDED = Failure("#NAME?")
"""What the office program says where it does not know a function."""
Found = dict[str, Formula]


def read_xlsx(path: Path, out: Output) -> None:
    """Raises Failed, Trouble."""
    read_workbook(path, path, out)


def read_workbook(path: Path, original: Path, out: Output) -> None:
    """``original``: the file as it came, which the office program prints and calculates; ``path`` is it as xlsx."""
    with package(path) as document:
        book = open_book(document)
        texts = [(sheet, read_sheet(book, sheet, BUDGET)) for sheet in book.sheets[:MAX_SHEETS]]
        out.omit(parts=max(0, len(book.sheets) - MAX_SHEETS))
        show = _recalculated(book, texts, original, out)
        for place, (sheet, said) in enumerate(texts):
            _sheet(sheet, said, out)
            _formulas(sheet, said, None if show is None else show[place], out)
            _beside(book, sheet, said, out)
        out.fact("sheets", len(book.sheets))
        out.part("metadata", "defined names", "\n".join(book.names))
        out.part("listing", "files inside", enclosed(document))
        out.part("metadata", "", core_facts(document, is_converted=path != original))
        embed(document, [name for name in sorted(document.names) if name.startswith("xl/media/")], out)
    show_pages(original, out)


def _sheet(sheet: Sheet, said: SheetText, out: Output) -> None:
    columns = "\t".join(letters(n) for n in range(1, min(said.last_column, NAMED_COLUMNS) + 1))
    text = said.table.text
    label = f"{sheet.name} (hidden sheet)" if sheet.is_hidden else sheet.name
    out.part("hidden" if sheet.is_hidden else "sheet", label, f"\t{columns}\n{text}" if text else "")
    out.omit(rows=said.table.left_rows, chars=said.table.left_chars)
    counts = [(said.hidden_rows, "hidden rows"), (len(said.hidden_columns), "hidden columns")]
    words = ", ".join(f"{count} {name}" for count, name in counts if count)
    if words or said.hidden.text:
        out.part("hidden", f"{sheet.name}: hidden cells", f"{words}\n{said.hidden.text}".strip())
        out.omit(rows=said.hidden.left_rows, chars=said.hidden.left_chars)


def _formulas(sheet: Sheet, said: SheetText, found: Found | None, out: Output) -> None:
    """Say each formula, and those again whose values differ."""
    if not said.formulas:
        return
    rows, differing, unknown = Rows(BUDGET), Rows(BUDGET), 0
    for address, formula in said.formulas.items():
        anew = None if found is None else found.get(address)
        text = formula.text or (anew.text if anew else "") or "(shared with an earlier cell)"
        line = f"{address}\t={text[:2000]}\t{_cut(formula.cached)}"
        if anew is not None:
            is_unknown = anew.cached == _NEEDED != formula.cached
            unknown += is_unknown
            line += "\t" + ("(function not known here)" if is_unknown else _cut(anew.cached))
            if differs(formula.cached, anew.cached):
                differing.add(line)
        rows.add(line)
    head = "cell\tformula\tcached value" + ("" if found is None else "\trecalculated value")
    for kind, lines in (("formulas", rows), ("differences", differing)):
        out.part(kind, sheet.name, f"{head}\n{lines.text}" if lines.text else "")
        out.omit(rows=lines.left_rows, chars=lines.left_chars)
    if unknown:
        out.note(f"{sheet.name}: {unknown} formulas not recalculated: functions that are not known here")


def differs(cached: Value | Failure, found: Value | Failure) -> bool:
    """Whether a remembered value is contradicted. Where nothing is remembered, only an error is news."""
    if found == _NEEDED:
        return False
    return isinstance(found, Failure) if cached is None else not same(cached, found)


def _cut(value: Value | Failure) -> str:
    return shown(value)[:500]


def _recalculated(book: Book, texts: list[tuple[Sheet, SheetText]], original: Path, out: Output) -> list[Found] | None:
    """Return each sheet's formulas with their values found anew; null where they were not, which is noted."""
    formulas = [f for _, said in texts for f in said.formulas.values()]
    out.fact("formulas", len(formulas))
    if not formulas:
        return None
    if missing := sum(f.cached is None for f in formulas):
        out.note(f"{missing} of {len(formulas)} formulas have no cached value")
    reason = book.obstacle() or next(
        (f"volatile function {name}" for f in formulas if (name := volatile(f.text))), None
    )
    if reason is None and out.office is None:
        reason = "no office program here"
    try:
        found = (
            None if reason or out.office is None else _values(out.office.convert(original, "recalculated", out), texts)
        )
    except (Failed, Trouble) as error:
        found, reason = None, f"{error.error if isinstance(error, Failed) else error.type}: {error}"
    if found is None:
        out.note(f"not recalculated: {reason}"[:500])
        return None
    pairs = [
        (f, anew[a])
        for (_, said), anew in zip(texts, found, strict=True)
        for a, f in said.formulas.items()
        if a in anew
    ]
    out.fact("differences", sum(differs(f.cached, anew.cached) for f, anew in pairs))
    return found


def _values(path: Path, texts: list[tuple[Sheet, SheetText]]) -> list[Found]:
    with package(path) as document:
        book = open_book(document)
        named = {sheet.name: sheet for sheet in book.sheets}
        return [
            read_sheet(book, named[sheet.name], 0).formulas if said.formulas and sheet.name in named else {}
            for sheet, said in texts
        ]


def _beside(book: Book, sheet: Sheet, said: SheetText, out: Output) -> None:
    """Comments, rules, charts."""
    document = book.document
    for kind in ("comments", "threadedComment"):
        for part in document.related(sheet.part, kind):
            notes = [f"{n.get('ref')}: {n.text.strip()}" for n in document.tree(part).all("comment", "threadedComment")]
            out.part("hidden", f"{sheet.name}: comments", "\n".join(notes))
    out.part("metadata", f"{sheet.name}: rules", "\n".join(said.rules))
    for drawing in document.related(sheet.part, "drawing"):
        for chart in document.related(drawing, "chart"):
            out.part("text", f"{sheet.name}: chart", chart_text(document.tree(chart)))
        words = [n.get("descr") for n in document.tree(drawing).all("cNvPr") if n.get("descr")]
        out.part("hidden", f"{sheet.name}: alternative texts", "\n".join(words))
        boxes = [n.text.strip() for n in document.tree(drawing).all("txBody")]
        out.part("text", f"{sheet.name}: text boxes", "\n".join(filter(None, boxes)))

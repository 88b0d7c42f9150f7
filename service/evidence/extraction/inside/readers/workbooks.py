"""Workbooks: each sheet as a table; each formula with the value that the file remembers and the one that is found anew; those
that differ; what is hidden; charts; pictures of the pages.
"""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.packages import core_facts, enclosed, package
from service.evidence.extraction.inside.readers.book import Book, Sheet, open_book
from service.evidence.extraction.inside.readers.cells import Failure, Value, letters, shown
from service.evidence.extraction.inside.readers.charts import chart_text
from service.evidence.extraction.inside.readers.office_pages import embed, show_pages
from service.evidence.extraction.inside.readers.recalculation import BUDGET, NEEDED, differs, recalculated
from service.evidence.extraction.inside.readers.rows import Rows
from service.evidence.extraction.inside.readers.sheets import SheetText, read_sheet

MAX_SHEETS = 400
NAMED_COLUMNS = 200


def read_xlsx(path: Path, out: Output) -> None:
    """Raises Failed, Trouble."""
    read_workbook(path, path, out)


def read_workbook(path: Path, original: Path, out: Output) -> None:
    """``original``: the file as it came, which the office program prints and calculates; ``path`` is it as xlsx."""
    with package(path) as document:
        book = open_book(document)
        texts = [(sheet, read_sheet(book, sheet, BUDGET)) for sheet in book.sheets[:MAX_SHEETS]]
        out.omit(parts=max(0, len(book.sheets) - MAX_SHEETS))
        anew = recalculated(book, texts, original, out)
        for sheet, said in texts:
            found = anew.get(sheet.name)
            _sheet(sheet, said, out)
            if found is not None and any(f.cached is None for f in said.formulas.values()):
                out.part("hidden" if sheet.is_hidden else "sheet", f"{sheet.name} (recalculated)", _table(found))
            _formulas(sheet, said, found, out)
            _beside(book, sheet, said, out)
        out.fact("sheets", len(book.sheets))
        out.part("metadata", "defined names", "\n".join(book.names))
        out.part("listing", "files inside", enclosed(document))
        out.part("metadata", "", core_facts(document, is_converted=path != original))
        embed(document, [name for name in sorted(document.names) if name.startswith("xl/media/")], out)
    show_pages(original, out)


def _sheet(sheet: Sheet, said: SheetText, out: Output) -> None:
    label = f"{sheet.name} (hidden sheet)" if sheet.is_hidden else sheet.name
    out.part("hidden" if sheet.is_hidden else "sheet", label, _table(said))
    out.omit(rows=said.table.left_rows, chars=said.table.left_chars)
    counts = [(said.hidden_rows, "hidden rows"), (len(said.hidden_columns), "hidden columns")]
    words = ", ".join(f"{count} {name}" for count, name in counts if count)
    if words or said.hidden.text:
        out.part("hidden", f"{sheet.name}: hidden cells", f"{words}\n{said.hidden.text}".strip())
        out.omit(rows=said.hidden.left_rows, chars=said.hidden.left_chars)


def _table(said: SheetText) -> str:
    columns = "\t".join(letters(n) for n in range(1, min(said.last_column, NAMED_COLUMNS) + 1))
    return f"\t{columns}\n{said.table.text}" if said.table.text else ""


def _formulas(sheet: Sheet, said: SheetText, found: SheetText | None, out: Output) -> None:
    """Say each formula, and those again whose values differ."""
    if not said.formulas:
        return
    rows, differing, unknown = Rows(BUDGET), Rows(BUDGET), 0
    for address, formula in said.formulas.items():
        anew = None if found is None else found.formulas.get(address)
        text = formula.text or (anew.text if anew else "") or "(shared with an earlier cell)"
        line = f"{address}\t={text[:2000]}\t{_cut(formula.cached)}"
        if anew is not None:
            is_unknown = anew.cached == NEEDED != formula.cached
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


def _cut(value: Value | Failure) -> str:
    return shown(value)[:500]


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

"""Pages of office documents as pictures: the office program prints, poppler draws."""

import re
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.packages import Package
from service.evidence.extraction.inside.readers.pdfs import page_pictures
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.programs import run

EMBEDDED = 12
"""Most pictures from inside a document: the pages show them as well."""
_PAGES = re.compile(r"^Pages:\s+(\d{1,6})$", re.MULTILINE)


def show_pages(path: Path, out: Output) -> None:
    """Give the first pages as pictures. What stands in the way is a note: the text is there without them."""
    if out.office is None:
        return out.note("no pictures of its pages: no office program here")
    try:
        printed = out.office.convert(path, "pdf", out)
        found = _PAGES.search(run(["pdfinfo", printed], out.scratch).stdout)
        pages = int(found.group(1)) if found else 0
        out.fact("pages_shown", min(pages, out.caps.pages))
        if pages >= out.caps.pages:
            out.note(f"pictures of the first {out.caps.pages} pages at most")
        page_pictures(printed, pages, out)
    except Failed as failed:
        out.note(f"no pictures of its pages: {failed.error}: {failed.detail}"[:500])
    except Trouble as trouble:
        out.note(f"no pictures of its pages: {trouble.type}")


def embed(document: Package, names: list[str], out: Output) -> None:
    """Give pictures from inside the document, in their order, each once."""
    unique = list(dict.fromkeys(names))
    for name in unique[:EMBEDDED]:
        content = document.picture(name)
        if content is None:
            out.omit(images=1)
        else:
            out.picture(name, "embedded", content)
    out.omit(images=max(0, len(unique) - EMBEDDED))

"""Older and open formats: the office program writes them in the modern one, which is read."""

from collections.abc import Callable
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.packages import whole
from service.evidence.extraction.inside.readers.compound import check_ole
from service.evidence.extraction.inside.readers.documents import read_document
from service.evidence.extraction.inside.readers.slides import read_presentation
from service.evidence.extraction.inside.readers.workbooks import read_workbook
from service.evidence.integrity.checker.office import read_open_document
from service.evidence.integrity.checker.sniff import ZIPPED


def read_as_xlsx(path: Path, out: Output) -> None:
    _read(path, "xlsx", read_workbook, out)


def read_as_docx(path: Path, out: Output) -> None:
    _read(path, "docx", read_document, out)


def read_as_pptx(path: Path, out: Output) -> None:
    _read(path, "pptx", read_presentation, out)


def _read(path: Path, to: str, read: Callable[[Path, Path, Output], None], out: Output) -> None:
    with whole():  # a bomb or a password is found before the office program meets it
        if out.kind in ZIPPED:
            read_open_document(path, out.kind)
        elif out.kind != "rtf":
            check_ole(path, out.kind)
    if out.office is None:
        raise Failed("office_unavailable", f"{out.kind} is read by the office program only")
    modern = out.office.convert(path, to, out)
    out.note(f"read as {to}, into which LibreOffice converted it")
    read(modern, path, out)

"""Containers of the old office formats: whether they need a password, and those under a name that promises something else."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.integrity.checker.ole import read_ole as look

MAX_BYTES = 64 << 20
_SECTOR = 512
_WORKBOOK = b"\x09\x08\x10\x00\x00\x06"
"""How the stream of a workbook begins."""
_PASSWORD = b"\x2f\x00"
"""The record that then comes first where there is a password."""
_DOCUMENT = b"\xec\xa5"
_ENCRYPTED_FLAG = 1
_SLIDES = b"\xdf\xc4\xd1\xf3"
"""In the user's record of a presentation that is encrypted."""


def read_ole(path: Path, out: Output) -> None:
    """Raises Trouble ``encrypted``, ``cannot_open``, ``truncated``."""
    out.fact("entries", int(look(path, out.kind).facts["entries"]))
    out.note("an old office document, or a mail of Outlook, whose name does not say so: not read")


def check_ole(path: Path, kind: str) -> None:
    """Refuse what needs a password or is no container: doc, xls, ppt. Raises Failed ``encrypted``, Trouble."""
    look(path, kind)
    with path.open("rb") as file:
        data = file.read(MAX_BYTES)
    if _FOUND[kind](data):
        raise Failed("encrypted", "the document needs a password")


def _workbook(data: bytes) -> bool:
    start = data.find(_WORKBOOK)
    return start >= 0 and data[start + 20 : start + 22] == _PASSWORD


def _document(data: bytes) -> bool:
    starts = (at for at in range(_SECTOR, len(data) - 12, _SECTOR) if data.startswith(_DOCUMENT, at))
    start = next(starts, None)
    return start is not None and bool(data[start + 11] & _ENCRYPTED_FLAG)


def _presentation(data: bytes) -> bool:
    return _SLIDES in data


_FOUND = {"xls": _workbook, "doc": _document, "ppt": _presentation}

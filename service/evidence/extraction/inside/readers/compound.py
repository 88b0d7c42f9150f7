"""Containers of the old office formats under a name that promises something else: mostly a document with a password."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.integrity.checker.ole import read_ole as look


def read_ole(path: Path, out: Output) -> None:
    """Raises Trouble ``encrypted``, ``cannot_open``, ``truncated``."""
    out.fact("entries", int(look(path, out.kind).facts["entries"]))
    out.note("an old office document, or a mail of Outlook, whose name does not say so: not read")

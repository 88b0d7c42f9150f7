"""Readers by kind, loaded when the first file of theirs comes."""

import importlib
from typing import cast

from service.evidence.extraction.inside.contract import Reader
from service.evidence.extraction.inside.kinds import READERS

_PACKAGE = "service.evidence.extraction.inside.readers"


def reader_of(kind: str) -> Reader | None:
    """Return the reader of a kind; null where there is none."""
    if kind not in READERS:
        return None
    module, _, function = READERS[kind].partition(":")
    return cast("Reader", getattr(importlib.import_module(f"{_PACKAGE}.{module}"), function))

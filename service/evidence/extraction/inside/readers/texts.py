"""Text and code, whole."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.integrity.checker.texts import text_of


def read_text(path: Path, out: Output) -> None:
    out.part("text", "", _decoded(path, out))


def read_code(path: Path, out: Output) -> None:
    out.fact("language", out.ext or "python")
    out.part("code", "", _decoded(path, out))


def _decoded(path: Path, out: Output) -> str:
    text, encoding = text_of(path)
    out.fact("encoding", encoding)
    out.fact("rows", text.count("\n") + (bool(text) and not text.endswith("\n")))
    return text.removeprefix("\ufeff")

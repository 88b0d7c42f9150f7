"""Text and code, whole; of what is too large to be read whole, the beginning and the end."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.integrity.checker.texts import MAX_BYTES, text_of


def read_text(path: Path, out: Output) -> None:
    text = decoded(path, out, "text")
    if text is not None:
        out.part("text", "", text)


def read_code(path: Path, out: Output) -> None:
    out.fact("language", out.ext or "python")
    text = decoded(path, out, "code")
    if text is not None:
        out.part("code", "", text)


def decoded(path: Path, out: Output, kind: str) -> str | None:
    """Return the text; null for one that is too large, of which the ends are given as parts. Raises Trouble."""
    if path.stat().st_size > MAX_BYTES:
        _ends(path, out, kind)
        return None
    text, encoding = text_of(path)
    out.fact("encoding", encoding)
    out.fact("rows", text.count("\n") + int(bool(text) and not text.endswith("\n")))
    return text.removeprefix("\ufeff")


def _ends(path: Path, out: Output, kind: str) -> None:
    half = out.caps.file_chars // 2
    with path.open("rb") as file:
        head = file.read(half)
        size = file.seek(0, 2)
        file.seek(size - half)
        tail = file.read()
    out.note(f"more than {MAX_BYTES >> 20} MiB of text: only its beginning and its end were read")
    out.part(kind, "beginning", head.decode("utf-8", "replace"))
    out.part(kind, "end", tail.decode("utf-8", "replace"))
    out.omit(chars=size - 2 * half)

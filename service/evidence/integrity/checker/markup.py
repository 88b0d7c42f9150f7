"""XML without entities, external or of its own: what defusedxml does, on the standard library's parser."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO
from xml.parsers import expat

from service.evidence.integrity.checker.findings import MIB, Seen, Trouble

MAX_BYTES = 128 * MIB
MAX_DEPTH = 500
_PIECE = 256 * 1024
_PIXELS = re.compile(r"\s*(\d{1,6})(?:\.\d+)?(?:px)?\s*\Z")
OnStart = Callable[[str, dict[str, str]], None]
OnWord = Callable[[str], None]


def walk(
    file: IO[bytes],
    on_start: OnStart | None = None,
    limit: int = MAX_BYTES,
    *,
    on_text: OnWord | None = None,
    on_end: OnWord | None = None,
) -> Counter[str]:
    """Parse a document; return how often each element (without namespace) occurs. Raises Trouble."""
    parser = expat.ParserCreate()
    elements: Counter[str] = Counter()
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise Trouble("bomb", f"XML nested more than {MAX_DEPTH} deep")
        if len(elements) < 10_000:
            elements[name.rpartition(":")[2]] += 1
        if on_start is not None:
            on_start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        if on_end is not None:
            on_end(name)

    def entity(*_: object) -> None:
        raise Trouble("bomb", "XML that declares entities is not expanded")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    if on_text is not None:
        parser.buffer_text = True
        parser.CharacterDataHandler = on_text
    parser.EntityDeclHandler = entity
    _feed(parser, file, limit)
    return elements


def _feed(parser: expat.XMLParserType, file: IO[bytes], limit: int) -> None:
    done = 0
    try:
        while piece := file.read(_PIECE):
            done += len(piece)
            if done > limit:
                raise Trouble("bomb", f"more than {limit >> 20} MiB of XML")
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        words = expat.errors.messages.get(error.code, "not well-formed")
        kind = (
            "truncated" if words in ("no element found", "unclosed token", "unclosed CDATA section") else "cannot_open"
        )
        raise Trouble(kind, f"XML: {words} in line {error.lineno}") from error


def read_xml(path: Path, _: str) -> Seen:
    with path.open("rb") as file:
        elements = walk(file)
    return Seen({"entries": elements.total()})


def read_svg(path: Path, _: str) -> Seen:
    seen = Seen()
    first = True

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal first
        if first and name.rpartition(":")[2] != "svg":
            raise Trouble("cannot_open", "the outermost element is not svg")
        if first:
            seen.facts |= _size(attributes)
        first = False

    with path.open("rb") as file:
        walk(file, start)
    return seen


def _size(attributes: dict[str, str]) -> dict[str, int]:
    found = {name: _PIXELS.match(attributes.get(name, "")) for name in ("width", "height")}
    return {name: int(match.group(1)) for name, match in found.items() if match}

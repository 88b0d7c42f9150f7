"""Notebooks: sources, outputs and pictures of the cells, in their order. Nothing is run."""

import base64
import binascii
import json
import re
from pathlib import Path
from typing import Any, cast

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.readers.texts import decoded

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_CELLS = 1900


def read_notebook(path: Path, out: Output) -> None:
    text = decoded(path, out, "code")
    if text is None:
        return
    try:
        book: object = json.loads(text)
    except ValueError as error:
        out.part("code", "", text)
        raise Failed("malformed", f"not JSON: {error}") from error
    cells = _list(_dict(book).get("cells"))
    if not cells and "cells" not in _dict(book):
        raise Failed("malformed", "no cells")
    spec = _dict(_dict(_dict(book).get("metadata")).get("kernelspec"))
    if isinstance(spec.get("name"), str):
        out.fact("kernel", str(spec["name"]))
    out.fact("cells", len(cells))
    for n, cell in enumerate(cells[:MAX_CELLS], 1):
        _cell(n, _dict(cell), out)
    out.omit(parts=max(0, len(cells) - MAX_CELLS))


def _cell(n: int, cell: dict[str, Any], out: Output) -> None:
    kind = cell.get("cell_type")
    code = kind == "code"
    count = cell.get("execution_count")
    ran = "" if not code else f", run as [{count}]" if isinstance(count, int) else ", not run"
    out.part("cell" if code else "text", f"cell {n} ({kind}{ran})"[:200], _text(cell.get("source")))
    for name, content in _dict(cell.get("attachments")).items():
        _pictures(f"cell {n}, {name}", _dict(content), out, "embedded")
    for output in _list(cell.get("outputs")):
        _output(n, _dict(output), out)


def _output(n: int, output: dict[str, Any], out: Output) -> None:
    kind, data = output.get("output_type"), _dict(output.get("data"))
    if kind == "stream":
        text = _text(output.get("text"))
    elif kind == "error":
        text = (
            "\n".join(str(line) for line in _list(output.get("traceback")))
            or f"{output.get('ename')}: {output.get('evalue')}"
        )
    else:
        text = next(
            (_text(data[k]) for k in ("text/markdown", "text/plain", "text/html", "application/json") if k in data), ""
        )
    out.part("output", f"cell {n}, {kind}"[:200], _COLOURS.sub("", text))
    _pictures(f"cell {n}, output", data, out, "output")


def _pictures(label: str, data: dict[str, Any], out: Output, source: str) -> None:
    for media in _PICTURES:
        if media in data:
            try:
                out.picture(label, source, base64.b64decode(_text(data[media])))
            except (binascii.Error, ValueError):
                out.note(f"picture {label[:200]} not shown: not base64")


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(str(line) for line in cast("list[object]", value))
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []

"""Drawings and scenes of design programs, and fonts: what their headers and lists say."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from service.evidence.extraction.inside.contract import Failed, Output

_HEAD = 1 << 20
_MOST = 64 << 20
_LINE = 65536
_ENTITY = re.compile(r"#\d{1,12}\s*=\s*([A-Z0-9_]{1,60})\s*\(")
_UNIT = re.compile(r"SI_UNIT\(\s*(\.\w{1,20}\.|\$)\s*,\s*(\.\w{1,20}\.)\s*\)")
_DXF_UNITS = {"0": "none", "1": "inches", "2": "feet", "4": "millimetres", "5": "centimetres", "6": "metres"}
_WITH_WORDS = frozenset({"TEXT", "MTEXT", "ATTRIB", "DIMENSION"})
_SAMPLE = ("The quick brown fox jumps over", "the lazy dog. 0123456789 ÄÖÜ éñ", "ABCDEFGHIJKLM nopqrstuvwxyz")


def read_design(path: Path, out: Output) -> None:
    """Raises Failed."""
    _READERS[out.kind](path, out)


def _text(path: Path, out: Output) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST)
    out.omit(chars=max(0, path.stat().st_size - len(data)))
    return data.decode("utf-8", "replace")


def _step(path: Path, out: Output) -> None:
    text = _text(path, out)
    if "ISO-10303-21" not in text[:1000]:
        raise Failed("cannot_open", "no STEP file")
    head, _, body = text.partition("DATA;")
    out.part("metadata", "header", head[:20_000])
    counts = Counter(found.group(1) for found in _ENTITY.finditer(body))
    out.fact("entities", counts.total())
    units = sorted({f"{prefix.strip('.$')} {unit.strip('.')}".strip().lower() for prefix, unit in _UNIT.findall(body)})
    out.fact("units", ", ".join(units)[:200] or "not stated")
    out.part("listing", "entities by kind", "\n".join(f"{count:>9}  {name}" for name, count in counts.most_common(200)))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    lines = iter(text.splitlines())
    for code in lines:
        yield code.strip(), next(lines, "").strip()


@dataclass(slots=True)
class _Drawing:
    counts: Counter[str] = field(default_factory=Counter[str])
    layers: Counter[str] = field(default_factory=Counter[str])
    words: list[str] = field(default_factory=list[str])
    header: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    section: str = ""
    _name: str = ""
    _entity: str = ""

    def take(self, code: str, value: str) -> None:
        if code == "0":
            self._entity = value
            self.counts.update([value] if self.section == "ENTITIES" and value != "ENDSEC" else [])
        elif code == "2" and self._entity == "SECTION":
            self.section = value
        elif self.section == "HEADER":
            self._name = value if code == "9" else self._name
            self.header.setdefault(self._name, []).extend([value] if code != "9" else [])
        elif self.section == "ENTITIES" and code == "8":
            self.layers.update([value[:200]])
        elif code in ("1", "3") and self._entity in _WITH_WORDS and value:
            self.words.append(value)


def _dxf(path: Path, out: Output) -> None:
    drawing = _Drawing()
    for code, value in _pairs(_text(path, out)):
        drawing.take(code, value)
    if not drawing.section:
        raise Failed("cannot_open", "no section in it")
    counts, layers, words, header = drawing.counts, drawing.layers, drawing.words, drawing.header
    out.fact("entities", counts.total())
    out.fact("units", _DXF_UNITS.get("".join(header.get("$INSUNITS", ["0"])[:1]), "other"))
    for fact, key in (("from", "$EXTMIN"), ("to", "$EXTMAX"), ("version", "$ACADVER")):
        if key in header:
            out.fact(fact, ", ".join(header[key][:3])[:100])
    out.part("text", "words in the drawing", "\n".join(words))
    out.part("listing", "entities by kind", "\n".join(f"{count:>9}  {kind}" for kind, count in counts.most_common(100)))
    out.part("listing", "layers", "\n".join(f"{count:>9}  {layer}" for layer, count in layers.most_common(200)))


def _magic(path: Path, out: Output) -> None:
    """Of closed formats: their version."""
    with path.open("rb") as file:
        head = file.read(64)
    known = {"dwg": b"AC10", "3dm": b"3D Geometry File Format", "blend": b"BLENDER", "fbx": b"Kaydara FBX Binary"}
    if head.startswith(known[out.kind]):
        out.fact("version", head[: 40 if out.kind == "3dm" else 12].decode("ascii", "replace").strip("\0 "))
        if out.kind == "fbx" and len(head) >= 27:
            out.fact("version", int.from_bytes(head[23:27], "little"))
    elif out.kind == "fbx" and b"FBX" in head:
        out.fact("version", "text")
    elif out.kind == "blend" and head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        out.fact("version", "packed")
    else:
        raise Failed("cannot_open", f"no {out.kind} file")
    out.note("metadata only")


def _font(path: Path, out: Output) -> None:
    try:
        font = ImageFont.truetype(str(path), 40)
        family, style = font.getname()
        image = Image.new("RGB", (900, 200), "white")
        for number, line in enumerate(_SAMPLE):
            ImageDraw.Draw(image).text((20, 15 + 58 * number), line, fill="black", font=font)
    except OSError as error:
        raise Failed("cannot_open", str(error)[:200]) from error
    out.fact("family", str(family)[:200])
    out.fact("style", str(style)[:100])
    sample = out.scratch / "sample.png"
    image.save(sample)
    out.picture("sample", "file", sample)


_READERS = {
    "step": _step, "dxf": _dxf, "font": _font, **dict.fromkeys(("fbx", "dwg", "3dm", "blend"), _magic),
}  # fmt: skip

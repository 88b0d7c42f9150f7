"""Presentations: slide by slide with tables, charts and groups; notes; apart from it what is not shown."""

from dataclasses import dataclass, field
from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.packages import Node, Package, core_facts, enclosed, package, related
from service.evidence.extraction.inside.readers.charts import chart_text
from service.evidence.extraction.inside.readers.office_pages import embed, show_pages

_MAIN = "ppt/presentation.xml"
TINY_HUNDREDTHS = 200
_SHAPES = frozenset({"sp", "grpSp", "graphicFrame", "pic", "cxnSp", "AlternateContent", "Choice"})


def read_pptx(path: Path, out: Output) -> None:
    """Raises Failed, Trouble."""
    read_presentation(path, path, out)


def read_presentation(path: Path, original: Path, out: Output) -> None:
    """``original``: the file as it came, which the office program prints; ``path`` is it as pptx."""
    with package(path) as document:
        main = document.main(_MAIN)
        top, relations = document.tree(main), document.relations(main)
        listed = [relations.get(related(one.attributes), ("", ""))[1] for one in top.all("sldId")]
        names = [name for name in listed if name in document.names]
        if len(names) < len(listed):
            out.note(f"{len(listed) - len(names)} slides are listed, but not there")
        size = top.child("sldSz")
        pictures: list[str] = []
        for number, name in enumerate(names, 1):
            pictures += _slide(document, name, number, _size(size), out)
        out.fact("slides", len(names))
        out.part("listing", "files inside", enclosed(document))
        out.part("metadata", "", core_facts(document, is_converted=path != original))
        embed(document, pictures, out)
    show_pages(original, out)


def _slide(document: Package, name: str, number: int, size: tuple[int, int] | None, out: Output) -> list[str]:
    """Return its pictures."""
    slide = Slide(document, name, size)
    is_hidden = slide.top.get("show") in ("0", "false")
    label = f"slide {number}" + (" (hidden: not shown)" if is_hidden else "")
    out.part("hidden" if is_hidden else "slide", label, "\n".join(slide.lines))
    out.part("hidden", f"slide {number}: tiny, hidden, or beside the slide", "\n".join(slide.hidden))
    out.part("hidden", f"slide {number}: alternative texts", "\n".join(slide.alternative))
    for notes in document.related(name, "notesSlide"):
        out.part("notes", f"slide {number}", "\n".join(_paragraphs(document.tree(notes))))
    for comments in document.related(name, "comments"):
        out.part("hidden", f"slide {number}: comments", document.tree(comments).text)
    return slide.pictures


@dataclass(slots=True)
class Slide:
    """What is on one."""

    document: Package
    name: str
    size: tuple[int, int] | None
    lines: list[str] = field(default_factory=list[str])
    hidden: list[str] = field(default_factory=list[str])
    alternative: list[str] = field(default_factory=list[str])
    pictures: list[str] = field(default_factory=list[str])
    top: Node = field(init=False)
    _relations: dict[str, tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.top = self.document.tree(self.name)
        self._relations = self.document.relations(self.name)
        for tree in self.top.all("spTree"):
            for shape in tree.children:  # inside of groups, places are the group's own
                self._shape(shape, unseen=self._is_outside(shape))

    def _shape(self, node: Node, *, unseen: bool) -> None:
        if node.name not in _SHAPES:
            return
        named = next(node.all("cNvPr"), None)
        if named is not None and node.name != "AlternateContent":
            unseen = unseen or named.get("hidden") in ("1", "true")
            if words := named.get("descr") or named.get("title"):
                self.alternative.append(words)
        self._content(node, unseen=unseen)
        for child in node.children:
            self._shape(child, unseen=unseen)

    def _content(self, node: Node, *, unseen: bool) -> None:
        if node.name == "sp":
            for line, tiny in _lines(node):
                (self.hidden if unseen or tiny else self.lines).append(line)
        elif node.name == "graphicFrame":
            (self.hidden if unseen else self.lines).extend(_table(node))
            self.lines.extend(self._chart(node))
        elif node.name == "pic":
            for blip in node.all("blip"):
                word, target = self._relations.get(blip.get("embed"), ("", ""))
                self.pictures += [target] if word == "image" else []

    def _chart(self, node: Node) -> list[str]:
        found: list[str] = []
        for chart in node.all("chart"):
            word, target = self._relations.get(related(chart.attributes), ("", ""))
            if word == "chart" and target in self.document.names:
                found.append(chart_text(self.document.tree(target)))
        return found

    def _is_outside(self, node: Node) -> bool:
        frame = node.find("spPr", "xfrm") or node.find("grpSpPr", "xfrm") or node.child("xfrm")
        place, extent = (frame.child("off"), frame.child("ext")) if frame else (None, None)
        if self.size is None or place is None or extent is None:
            return False
        x, y, wide, high = (_number(v) for v in (place.get("x"), place.get("y"), extent.get("cx"), extent.get("cy")))
        return x >= self.size[0] or y >= self.size[1] or x + wide <= 0 or y + high <= 0


def _paragraphs(node: Node) -> list[str]:
    return [line for line, _ in _lines(node)]


def _lines(node: Node) -> list[tuple[str, bool]]:
    """Return each paragraph, and whether it is too small to be read."""
    found: list[tuple[str, bool]] = []
    for paragraph in node.all("p"):
        pieces, tiny = [""], True
        for run in paragraph.all("r", "fld", "br"):
            words = "".join(text.text for text in run.all("t")) if run.name != "br" else "\n"
            size = run.child("rPr").get("sz") if run.child("rPr") else ""  # pyright: ignore[reportOptionalMemberAccess]
            tiny = tiny and (not words.strip() or (size.isdecimal() and _number(size) < TINY_HUNDREDTHS))
            pieces.append(words)
        line = "".join(pieces)
        if line.strip():
            found.append((line, tiny))
    return found


def _table(node: Node) -> list[str]:
    rows = (row for table in node.all("tbl") for row in table.all("tr"))
    return ["| " + " | ".join(" / ".join(_paragraphs(cell)) for cell in row.all("tc")) + " |" for row in rows]


def _size(node: Node | None) -> tuple[int, int] | None:
    return (_number(node.get("cx")), _number(node.get("cy"))) if node else None


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else 0

"""Text documents: in order, with headings, lists, tables, notes, changes; apart from it what a reader does not see."""

from dataclasses import dataclass, field
from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.packages import Node, Package, core_facts, enclosed, package, related
from service.evidence.extraction.inside.readers.office_pages import embed, show_pages
from service.evidence.extraction.inside.readers.runs import Styles

_MAIN = "word/document.xml"
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_CHANGES = {"ins": "inserted", "del": "deleted", "moveFrom": "moved from here", "moveTo": "moved here"}
_SKIPPED = frozenset(
    {"pPr", "rPr", "tblPr", "tblGrid", "tcPr", "trPr", "sdtPr", "Fallback", "instrText", "sectPr", "fldData"}
)
_LEVELS = 9


def read_docx(path: Path, out: Output) -> None:
    """Raises Failed, Trouble."""
    read_document(path, path, out)


def read_document(path: Path, original: Path, out: Output) -> None:
    """``original``: the file as it came, which the office program prints; ``path`` is it as docx."""
    with package(path) as document:
        text = DocumentText(document)
        main = document.main(_MAIN)
        out.part("text", "", text.of(main))
        for label, kind in (
            ("headers", "header"),
            ("footers", "footer"),
            ("footnotes", "footnotes"),
            ("endnotes", "endnotes"),
        ):
            out.part("text", label, "\n".join(filter(str.strip, (text.of(p) for p in document.related(main, kind)))))
        comments = [text.of(p) for p in document.related(main, "comments")]
        out.part("hidden", "comments", "\n".join(comments))
        out.part("hidden", "text that a reader does not see", "\n".join(text.hidden))
        out.part("hidden", "alternative texts", "\n".join(text.alternative))
        out.part("listing", "files inside", enclosed(document))
        out.part("metadata", "", core_facts(document, is_converted=path != original))
        out.fact("paragraphs", text.paragraphs)
        if text.changes:
            out.note(f"{text.changes} tracked changes, marked in the text")
        embed(document, text.pictures, out)
    show_pages(original, out)


@dataclass(slots=True)
class _State:
    """Around an element."""

    part: str
    relations: dict[str, tuple[str, str]]
    hides: bool = False
    pieces: list[str] = field(default_factory=list[str])


class DocumentText:
    """Collects over the parts of a document what is beside its text."""

    def __init__(self, document: Package) -> None:
        self._document = document
        styles = document.related(document.main(_MAIN), "styles")
        self._styles = Styles(document.tree_of(styles[0] if styles else "word/styles.xml"))
        self.hidden: list[str] = []
        self.alternative: list[str] = []
        self.pictures: list[str] = []
        self.paragraphs = self.changes = 0

    def of(self, part: str) -> str:
        """Return the text of a part. Raises Failed, Trouble."""
        top = self._document.tree(part)
        state = _State(part, self._document.relations(part))
        lines: list[str] = []
        for child in top.children:
            self._block(child, state, lines)
        return "\n".join(lines)

    def _block(self, node: Node, state: _State, lines: list[str]) -> None:
        if node.name == "p":
            self._paragraph(node, state, lines)
        elif node.name == "tbl":
            self._table(node, state, lines)
        elif node.name in ("footnote", "endnote", "comment") and node.get("type") not in (
            "separator",
            "continuationSeparator",
        ):
            author = f" by {node.get('author')}" if node.get("author") else ""
            lines.append(f"[{node.name} {node.get('id')}{author}]")
            for child in node.children:
                self._block(child, state, lines)
        elif node.name not in _SKIPPED:
            for child in node.children:
                self._block(child, state, lines)

    def _paragraph(self, node: Node, state: _State, lines: list[str]) -> None:
        self.paragraphs += 1
        style = node.find("pPr", "pStyle")
        name = style.get("val") if style else ""
        mark = self._styles.heading(name)
        number = node.find("pPr", "numPr")
        if not mark and (number is not None or self._styles.is_listed(name)):
            level = number.child("ilvl") if number else None
            deep = level.get("val") if level else "0"
            mark = "  " * min(int(deep) if deep.isdecimal() and len(deep) < 3 else 0, _LEVELS) + "- "
        inner = _State(state.part, state.relations, self._styles.hides(name))
        blocks: list[str] = []
        self._inline(node, inner, blocks)
        line = "".join(inner.pieces)
        lines.append(mark + line if line.strip() else line)
        lines += blocks

    def _inline(self, node: Node, state: _State, blocks: list[str]) -> None:
        for child in node.children:
            if child.name in _SKIPPED:
                continue
            if child.name in _CHANGES:
                self._changed(child, state, blocks)
            elif child.name == "r":
                self._run(child, state, blocks)
            elif child.name == "hyperlink":
                self._inline(child, state, blocks)
                word, target = state.relations.get(related(child.attributes), ("", ""))
                state.pieces.append(f" <{target}>" if word == "hyperlink" else "")
            else:
                self._leaf(child, state, blocks)

    def _changed(self, node: Node, state: _State, blocks: list[str]) -> None:
        self.changes += 1
        state.pieces.append(f"[{_CHANGES[node.name]} by {node.get('author') or 'unknown'}: ")
        self._inline(node, state, blocks)
        state.pieces.append("]")

    def _run(self, node: Node, state: _State, blocks: list[str]) -> None:
        hides = self._styles.run_hides(node.child("rPr"), default=state.hides)
        if not hides:
            self._inline(node, state, blocks)
            return
        inner = _State(state.part, state.relations, hides)
        self._inline(node, inner, blocks)
        if "".join(inner.pieces).strip():
            self.hidden.append("".join(inner.pieces))

    def _leaf(self, node: Node, state: _State, blocks: list[str]) -> None:
        if node.name in ("t", "delText"):
            state.pieces.append(node.text)
        elif node.name in _BREAKS:
            state.pieces.append(_BREAKS[node.name])
        elif node.name in ("footnoteReference", "endnoteReference", "commentReference"):
            state.pieces.append(f"[{node.name.removesuffix('Reference')} {node.get('id')}]")
        elif node.name == "sym":
            state.pieces.append("\N{REPLACEMENT CHARACTER}")
        elif node.name == "txbxContent":
            for child in node.children:
                self._block(child, state, blocks)
        else:
            self._drawn(node, state)
            self._inline(node, state, blocks)

    def _drawn(self, node: Node, state: _State) -> None:
        if node.name in ("docPr", "cNvPr") and (words := node.get("descr") or node.get("title")):
            if words not in self.alternative:
                self.alternative.append(words)
        elif node.name in ("blip", "imagedata"):
            reference = node.get("embed") or related(node.attributes)
            word, target = state.relations.get(reference, ("", ""))
            if word == "image":
                self.pictures.append(target)

    def _table(self, node: Node, state: _State, lines: list[str]) -> None:
        for row in node.all("tr"):
            cells: list[str] = []
            for cell in row.all("tc"):
                inside: list[str] = []
                for child in cell.children:
                    self._block(child, state, inside)
                cells.append(" / ".join(filter(str.strip, inside)).replace("\n", " "))
            lines.append("| " + " | ".join(cells) + " |")

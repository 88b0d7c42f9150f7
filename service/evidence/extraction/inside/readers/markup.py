"""XML as it stands; SVG as its text and as a picture. Entities are refused before anything else looks at them."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.readers import styles
from service.evidence.extraction.inside.readers.pages import tidy
from service.evidence.extraction.inside.readers.texts import decoded
from service.evidence.integrity.checker.findings import Trouble
from service.evidence.integrity.checker.markup import walk
from service.evidence.integrity.checker.programs import run

DRAW_S = 20.0


def read_xml(path: Path, out: Output) -> None:
    text = decoded(path, out, "code")
    if text is None:
        return
    out.part("code", "", text)
    with path.open("rb") as file:
        out.fact("elements", walk(file).total())


def read_svg(path: Path, out: Output) -> None:
    drawing = _Drawing()
    with path.open("rb") as file:
        elements = walk(file, drawing.start, on_text=drawing.text, on_end=drawing.end)
    out.fact("elements", elements.total())
    for name in ("width", "height", "viewBox"):
        if name in drawing.root:
            out.fact(name, drawing.root[name][:60])
    out.part("text", "", tidy("".join(drawing.seen)))
    out.part("hidden", "text that is not shown", tidy("".join(drawing.hidden)))
    out.part("hidden", "titles and descriptions", tidy("".join(drawing.said)))
    out.part("code", "scripts", "".join(drawing.scripts))
    _draw(path, out)
    text = decoded(path, out, "code")
    if text is not None:
        out.part("code", "", text)


def _draw(path: Path, out: Output) -> None:
    """Lone in a folder of its own, a drawing can refer to nothing."""
    folder = out.scratch / "svg"
    folder.mkdir()
    lone, side = folder / "drawing.svg", str(out.caps.image_pixels)
    lone.write_bytes(path.read_bytes())
    try:
        done = run(
            ["rsvg-convert", "-a", "-w", side, "-h", side, "-b", "white", "-o", folder / "drawing.png", lone], out.scratch,
            timeout_s=DRAW_S,
        )  # fmt: skip
    except Trouble:
        out.note(f"not drawn within {DRAW_S:g} s")
        return
    if done.code == 0:
        out.picture("drawing", "file", folder / "drawing.png")
    else:
        out.note(f"not drawn: {done.complaint[:200]}")


class _Drawing:
    def __init__(self) -> None:
        self.root: dict[str, str] = {}
        self.seen: list[str] = []
        self.hidden: list[str] = []
        self.said: list[str] = []
        self.scripts: list[str] = []
        self._open: list[tuple[str, bool, bool]] = []
        """Name, whether it is hidden, whether what is in it is text of the drawing."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if not self._open:
            if name != "svg":
                raise Trouble("cannot_open", "the outermost element is not svg")
            self.root = attributes
        _, hidden, is_text = self._open[-1] if self._open else ("", False, False)
        style = {k: v.lower() for k, v in attributes.items()} | styles.declarations(attributes.get("style", ""))
        fill = styles.colour(style.get("fill"))
        unseen = styles.vanishes(style) or styles.is_tiny(style.get("font-size")) or style.get("fill") == "none"
        # White on what is not known: text may lie on a dark shape, and is kept apart all the same.
        white = fill is not None and styles.alike(fill, styles.WHITE)
        is_text = is_text or name == "text" or name == "foreignObject"
        hides = unseen or (white and is_text) or name in ("defs", "metadata", "desc", "title")
        self._open.append((name, hidden or hides, is_text))
        if name in ("text", "tspan"):
            (self.hidden if self._open[-1][1] else self.seen).append("\n")

    def end(self, _: str) -> None:
        self._open.pop()

    def text(self, data: str) -> None:
        name, hidden, is_text = self._open[-1]
        if name in ("title", "desc", "metadata"):
            self.said.append(data + "\n")
        elif name == "script":
            self.scripts.append(data)
        elif is_text:
            (self.hidden if hidden else self.seen).append(data)

"""Which styles of a text document are headings, and which runs no reader sees: vanished, white or tiny."""

import re

from service.evidence.extraction.inside.packages import Node
from service.evidence.extraction.inside.readers import styles

TINY_HALF_POINTS = 4
_HEADING = re.compile(r"heading ([1-9])\Z")
_BASES = 10
_OFF = frozenset({"0", "false", "off"})


class Styles:
    """Of a document's part ``styles``."""

    def __init__(self, tree: Node | None) -> None:
        self._by_id = {one.get("styleId"): one for one in tree.children if one.name == "style"} if tree else {}

    def heading(self, style: str) -> str:
        """Return the mark of a heading of this style, empty for others."""
        node = self._by_id.get(style)
        named = node.child("name") if node else None
        name = (named.get("val") if named else style).lower()
        found = _HEADING.match(name)
        return "#" * int(found.group(1)) + " " if found else "# " if name == "title" else ""

    def is_listed(self, style: str) -> bool:
        """Whether paragraphs of this style are items of a list."""
        node = self._by_id.get(style)
        return node is not None and node.find("pPr", "numPr") is not None

    def hides(self, style: str) -> bool:
        for _ in range(_BASES):
            node = self._by_id.get(style)
            if node is None:
                return False
            said = hidden(node.child("rPr"))
            if said is not None:
                return said
            base = node.child("basedOn")
            style = base.get("val") if base else ""
        return False

    def run_hides(self, properties: Node | None, *, default: bool) -> bool:
        """Whether a run of these properties is not seen; ``default`` is what its paragraph's style says."""
        said = hidden(properties)
        if said is not None:
            return said
        style = properties.child("rStyle") if properties else None
        return default or (style is not None and self.hides(style.get("val")))


def hidden(properties: Node | None) -> bool | None:
    """Return whether the properties hide a text; null where they say nothing of it."""
    if properties is None:
        return None
    flags = (properties.child(name) for name in ("vanish", "webHidden"))
    said = [flag.get("val", "1") not in _OFF for flag in flags if flag is not None]
    if (size := properties.child("sz")) is not None and size.get("val").isdecimal():
        said.append(len(size.get("val")) < 3 and int(size.get("val")) < TINY_HALF_POINTS)
    if (ink := properties.child("color")) is not None and (colour := styles.colour(f"#{ink.get('val').lower()}")):
        said.append(styles.alike(colour, _ground(properties)))
    return any(said) if said else None


def _ground(properties: Node) -> styles.Colour:
    """Return the colour behind the text, white where nothing is said of it."""
    shade = properties.child("shd")
    return (styles.colour(f"#{shade.get('fill').lower()}") if shade else None) or styles.WHITE

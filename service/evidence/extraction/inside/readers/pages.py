"""HTML: the text that a reader sees, apart from what is hidden; scripts and styles as code; alt texts; inlined pictures.

Nothing is rendered: what is hidden is told by attributes, by inline styles and by the page's own plain rules (``.a``,
``#b``, ``p``).
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote_to_bytes

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.readers import styles
from service.evidence.extraction.inside.readers.texts import decoded

MAX_CHARS = 16 << 20
_VOID_NAMES = "area base br col embed hr img input link meta param source track wbr"
_BLOCK_NAMES = (
    "address article aside blockquote body dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li "
    "main nav ol option p pre section summary table tbody tfoot thead tr ul br title"
)
_VOID, _BLOCKS = frozenset(_VOID_NAMES.split()), frozenset(_BLOCK_NAMES.split())
_SELECTOR = re.compile(r"([a-z][a-z0-9]*)?([.#][\w-]+)?\Z", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_LINES = re.compile(r"\n\s*\n\s*")
MAX_DEPTH = 2000
MAX_LINKS = 200
MAX_RULES, MAX_SELECTORS = 5000, 2000


def read_html(path: Path, out: Output) -> None:
    text = decoded(path, out, "code")
    if text is None:
        return
    page = _Page()
    try:
        page.rules = _rules(text[:MAX_CHARS])
        page.feed(text[:MAX_CHARS])
        page.close()
    except Failed:  # it took too long: better its source than nothing
        out.part("code", "source", text)
        raise
    out.omit(chars=max(0, len(text) - MAX_CHARS))
    for name, value in page.meta.items():
        out.fact(name, value)
    out.part("text", "", tidy("".join(page.seen)))
    out.part("hidden", "text that is not shown", tidy("".join(page.hidden)))
    out.part("hidden", "comments", "\n".join(page.comments))
    out.part("hidden", "alt texts and titles", "\n".join(page.alts))
    out.part("listing", "links", "\n".join(page.links[:MAX_LINKS]))
    out.omit(parts=max(0, len(page.links) - MAX_LINKS))
    out.part("code", "scripts", "\n\n".join(page.scripts))
    out.part("code", "styles", "\n\n".join(page.sheets))
    for n, (label, data) in enumerate(page.pictures, 1):
        out.picture(label or f"picture {n}", "embedded", data)


def tidy(text: str) -> str:
    return _LINES.sub("\n\n", _BLANKS.sub(" ", text)).strip()


def _rules(text: str) -> dict[str, dict[str, str]]:
    """Return what the page's own sheets say of plain selectors: tag, ``.class``, ``#id``, and tag with one of these.

    Each letter is looked at once: patterns that go back and forth can be made to take for ever.
    """
    found: dict[str, dict[str, str]] = {}
    for sheet in _between(text, text.lower(), "<style", "</style"):
        for rule in _uncommented(sheet.partition(">")[2]).split("}"):
            selectors, brace, body = rule.rpartition("{")
            if not brace or "@" in selectors or len(selectors) > MAX_SELECTORS:
                continue
            declared = styles.declarations(body)
            for selector in selectors.rpartition("{")[2].split(","):
                if _SELECTOR.match(selector.strip()) and len(found) < MAX_RULES:
                    found.setdefault(selector.strip().lower(), {}).update(declared)
    return found


def _uncommented(sheet: str) -> str:
    first, *rest = sheet.split("/*")
    return first + "".join(piece.partition("*/")[2] for piece in rest)


def _between(text: str, searched: str, start: str, end: str) -> Iterator[str]:
    """Yield what stands between the two; ``searched`` is the text as it is compared."""
    at = searched.find(start)
    while at >= 0:
        stop = searched.find(end, at + len(start))
        if stop < 0:
            return
        yield text[at + len(start) : stop]
        at = searched.find(start, stop)


@dataclass(slots=True)
class _Open:
    """An element that has not ended, as it is styled."""

    tag: str
    hidden: bool = False
    colour: styles.Colour | None = None
    ground: styles.Colour | None = styles.WHITE
    """Null: unknown, a picture say."""
    clear: bool = False
    """Its text has no colour."""
    tiny: bool = False

    @property
    def unseen(self) -> bool:
        alike = self.colour is not None and self.ground is not None and styles.alike(self.colour, self.ground)
        return self.hidden or self.tiny or self.clear or alike


class _Page(HTMLParser):
    NEVER_SHOWN: ClassVar = frozenset({"template", "noscript", "datalist"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rules: dict[str, dict[str, str]] = {}
        self.seen: list[str] = []
        self.hidden: list[str] = []
        self.comments: list[str] = []
        self.alts: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.sheets: list[str] = []
        self.pictures: list[tuple[str, bytes]] = []
        self.meta: dict[str, str] = {}
        self._open: list[_Open] = [_Open("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._note(tag, given)
        if tag in _BLOCKS:
            self._say("\n")
        if tag in ("td", "th"):
            self._say(" | ")
        if tag not in _VOID and len(self._open) < MAX_DEPTH:
            self._open.append(self._styled(tag, given))

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                break
        if tag in _BLOCKS:
            self._say("\n")

    def handle_data(self, data: str) -> None:
        tag = self._open[-1].tag
        if tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.sheets.append(data)
        elif tag == "title":
            self.meta.setdefault("title", " ".join(data.split())[:300])
        else:
            self._say(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data.strip())

    def _say(self, text: str) -> None:
        (self.hidden if self._open[-1].unseen else self.seen).append(text)

    def _note(self, tag: str, given: dict[str, str]) -> None:
        """Keep what attributes say."""
        for name in ("alt", "title", "aria-label", "placeholder"):
            if given.get(name, "").strip():
                self.alts.append(f"{tag} {name}: {given[name].strip()}")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"][:500])
        if tag == "meta" and given.get("name") in ("description", "author", "generator", "keywords"):
            self.meta.setdefault(given["name"], given.get("content", "")[:300])
        if tag == "input" and given.get("type") != "hidden" and given.get("value"):
            self._say(f" [{given['value']}] ")
        source = given.get("src", "")
        if tag == "img" and source.startswith("data:image/") and len(self.pictures) < 64:
            data = _inlined(source)
            if data:
                self.pictures.append((given.get("alt", "")[:200], data))

    def _styled(self, tag: str, given: dict[str, str]) -> _Open:
        style: dict[str, str] = {}
        for selector in _selectors(tag, given):
            style |= self.rules.get(selector, {})
        style |= styles.declarations(given.get("style", ""))
        above = self._open[-1]
        ground = style.get("background-color") or style.get("background") or given.get("bgcolor", "").lower() or None
        text = style.get("color") or given.get("color", "").lower() or None
        own = styles.colour(text)
        return _Open(
            tag,
            hidden=above.hidden or tag in self.NEVER_SHOWN or "hidden" in given or styles.vanishes(style),
            colour=own if own is not None else above.colour,
            ground=above.ground if ground in (None, "none", "transparent", "inherit") else styles.colour(ground),
            clear=styles.is_see_through(text) or (above.clear and text is None),
            tiny=styles.is_tiny(style["font-size"]) if "font-size" in style else above.tiny,
        )


def _selectors(tag: str, given: dict[str, str]) -> list[str]:
    """From the least to the most telling."""
    names = [f".{name}" for name in given.get("class", "").lower().split()[:20]]
    ids = [f"#{given['id'].lower()}"] if given.get("id") else []
    return [tag, *names, *(tag + name for name in names), *ids, *(tag + name for name in ids)]


def _inlined(source: str) -> bytes:
    kind, comma, content = source.partition(",")
    if not comma or "svg" in kind:
        return b""
    try:
        return base64.b64decode(content) if kind.endswith(";base64") else unquote_to_bytes(content)
    except (binascii.Error, ValueError):
        return b""

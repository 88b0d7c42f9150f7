"""A small, safe part of Markdown for briefs and instructions: structure and emphasis, nothing that loads or runs.

All text is escaped and made inert first; what is not understood stays text. Links lead to http, https and mailto only,
pictures are named and never loaded, markup of HTML is shown as it is written. Time is linear in the text's length.
"""

import re
from collections.abc import Callable, Iterator

from markupsafe import Markup, escape

from service.dashboard.inert import inert

MAX_CHARS = 200_000
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)\Z")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]{0,12}([-*+]|\d{1,9}[.)])[ \t]+(.*)\Z")
_RULE = re.compile(r"[ \t]*([-*_])([ \t]*\1){2,}[ \t]*\Z")
_DIVIDER = re.compile(
    r"[ \t]{0,12}\|?[ \t]{0,12}:?-+:?[ \t]{0,99}(\|[ \t]{0,99}:?-+:?[ \t]{0,99}){0,200}\|?[ \t]{0,12}\Z"
)
_INLINE = re.compile(
    r"`(?P<code>[^`\n]{1,2000})`"
    r"|!\[(?P<alt>[^\]\n]{0,300})\]\([^()\n]{0,2000}\)"
    r"|\[(?P<text>[^\]\n]{1,500})\]\((?P<url>[^()\s]{1,2000})(?:[ \t][^()\n]{0,300})?\)"
    r"|\*\*(?P<strong>[^*\n]{1,1000})\*\*|\*(?P<em>[^*\n]{1,1000})\*|(?<!\w)_(?P<em2>[^_\n]{1,1000})_(?!\w)"
)
_SAFE_URL = re.compile(r"(https?://[^\s\\]|mailto:[^\s\\])", re.IGNORECASE)


def markdown(text: object) -> Markup:
    """Return ``text`` as safe HTML."""
    lines = inert(str(text).replace("\r\n", "\n"), MAX_CHARS).split("\n")
    return Markup("\n").join(_blocks(lines))


def _blocks(lines: list[str]) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if not line.strip():
            at = end
            continue
        if fence := _FENCE.match(line.lstrip()):
            end = _until(lines, end, lambda s, mark=fence[1]: s.strip().startswith(mark))
            yield Markup("<pre>{}</pre>").format("\n".join(lines[at + 1 : end]))
            end += 1
        elif heading := _HEADING.match(line):
            # The page has its own first and second levels.
            yield Markup("<h{0}>{1}</h{0}>").format(min(len(heading[1]) + 2, 6), _inline(heading[2].rstrip(" #")))
        elif _RULE.match(line):
            yield Markup("<hr>")
        elif _ITEM.match(line):
            end = _until(lines, end, lambda s: not s.strip() or not (_ITEM.match(s) or s[:1] in " \t"))
            yield _list(lines[at:end])
        elif line.startswith(">"):
            end = _until(lines, end, lambda s: not s.startswith(">"))
            yield Markup("<blockquote>{}</blockquote>").format(_inline(" ".join(s[1:].strip() for s in lines[at:end])))
        elif "|" in line and end < len(lines) and "-" in lines[end] and _DIVIDER.match(lines[end]):
            end = _until(lines, end + 1, lambda s: "|" not in s)
            yield _table(lines[at], lines[at + 2 : end])
        else:
            end = _until(lines, end, _begins_another)
            yield Markup("<p>{}</p>").format(_inline("\n".join(lines[at:end])))
        at = end


def _until(lines: list[str], at: int, over: Callable[[str], bool]) -> int:
    while at < len(lines) and not over(lines[at]):
        at += 1
    return at


def _begins_another(line: str) -> bool:
    marks = (_HEADING, _ITEM, _RULE)
    return not line.strip() or line.startswith(">") or bool(_FENCE.match(line)) or any(m.match(line) for m in marks)


def _list(lines: list[str]) -> Markup:
    items: list[str] = []
    for line in lines:
        if found := _ITEM.match(line):
            items.append(found[2])
        else:
            items[-1] += "\n" + line.strip()
    first = _ITEM.match(lines[0])
    kind = "ol" if first is not None and first[1][0].isdigit() else "ul"
    inside = Markup("").join(Markup("<li>{}</li>").format(_inline(item)) for item in items)
    return Markup("<{0}>{1}</{0}>").format(kind, inside)


def _table(head: str, rows: list[str]) -> Markup:
    def cells(line: str, tag: str) -> Markup:
        parts = (part.strip() for part in line.strip().strip("|").split("|"))
        return Markup("").join(Markup("<{0}>{1}</{0}>").format(tag, _inline(part)) for part in parts)

    body = Markup("").join(Markup("<tr>{}</tr>").format(cells(row, "td")) for row in rows)
    return Markup('<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>').format(
        cells(head, "th"), body
    )


def _inline(text: str) -> Markup:
    done, at = [Markup("")], 0
    for found in _INLINE.finditer(text):
        done += [escape(text[at : found.start()]), _mark(found)]
        at = found.end()
    return Markup("").join([*done, escape(text[at:])])


def _mark(found: re.Match[str]) -> Markup:
    said = found.groupdict()
    if said["code"] is not None:
        return Markup("<code>{}</code>").format(said["code"])
    if said["alt"] is not None:
        return Markup("[picture: {}]").format(said["alt"])
    if said["text"] is None:
        tag = "strong" if said["strong"] is not None else "em"
        return Markup("<{0}>{1}</{0}>").format(tag, _inline(said["strong"] or said["em"] or said["em2"]))
    if not _SAFE_URL.match(said["url"]):
        return Markup("{} ({})").format(said["text"], said["url"])
    return Markup('<a href="{}" rel="noopener noreferrer nofollow" target="_blank">{}</a>').format(
        said["url"], said["text"]
    )

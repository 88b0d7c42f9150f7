"""Reads named files from a model's answer. Tolerant of form, strict about names: what is refused is said, not guessed.

Forms, the first that gives a file wins: ``<file name="…">…</file>``; fenced blocks with a name in their first line or in
the line before; a JSON object of names and texts. What is in no file is the note to the client, or ``<note>…</note>`` is.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from service.domain.errors import Invalid
from service.domain.paths import check_relative_path

MAX_FILES = 200
_TAG = re.compile(r"<file\s+(?:name|path)\s*=\s*(?P<q>[\"'])(?P<name>[^\"'\n]{1,400})(?P=q)\s*>\n?", re.IGNORECASE)
_TAG_END = re.compile(r"</file\s*>", re.IGNORECASE)
_NOTE = re.compile(r"<note>\s*(?P<text>.*?)\s*(?:</note>|\Z)", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")
_NAMED = re.compile(
    r"(?:^|\s)(?:path|name|file|filename|title)\s*[=:]\s*[\"']?(?P<name>[^\s\"'`]+)[\"']?", re.IGNORECASE
)
_LOOKS = re.compile(r"[\w ()&,+@~./-]{0,300}[\w)]\.[A-Za-z0-9]{1,8}")
_LABEL = re.compile(
    r"^\W*(?:(?:the )?file(?:name)?|path)?\s*:?\s*[*_`\"'#\s]*(?P<name>[^*`\"']+?)[*_`\"'\s]*:?\s*$", re.IGNORECASE
)


@dataclass(slots=True)
class Found:
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Path below the output folder → text."""
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(name, why)"""
    note: str = ""
    unfinished: str | None = None
    """File that has no end: the answer was cut inside it."""
    form: str = ""

    def add(self, name: str, text: str) -> None:
        """Take a file. The last of one name counts."""
        try:
            path = clean_name(name)
        except Invalid as error:
            self.refused.append((name[:200], error.type))
            return
        if path not in self.files and len(self.files) >= MAX_FILES:
            self.refused.append((name[:200], "too_many_files"))
        elif any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in self.files):
            self.refused.append((name[:200], "file_is_folder"))
        else:
            self.files[path] = text


def parse(text: str) -> Found:
    """Read the answer. Never raises; ``files`` is empty where there are none."""
    readers: tuple[tuple[str, Callable[[str, Found], str]], ...] = (
        ("tags", _tags),
        ("json", _json),
        ("fences", _fences),
    )
    refused: list[tuple[str, str]] = []
    for form, read in readers:
        found = Found(form=form)
        rest = read(text, found)
        if found.files:
            found.note = _note(text, rest)
            found.refused = [*refused, *found.refused]
            return found
        refused += found.refused
    return Found(refused=refused, note=_note(text, text))


def clean_name(name: str) -> str:
    """Return the path below the output folder. Raises Invalid for names that lead elsewhere or are no names."""
    path = name.strip().replace("\\", "/")
    for prefix in ("/workspace/output/", "workspace/output/", "./", "output/"):
        path = path.removeprefix(prefix)
    try:
        return check_relative_path(path)
    except ValueError as error:
        raise Invalid("bad_file_name", str(error)) from error


def _note(text: str, rest: str) -> str:
    told = _NOTE.search(rest) or _NOTE.search(text)
    return told["text"] if told else rest.strip()


def _tags(text: str, found: Found) -> str:
    rest: list[str] = []
    at = 0
    while (start := _TAG.search(text, at)) is not None:
        rest.append(text[at : start.start()])
        end = _TAG_END.search(text, start.end())
        body = text[start.end() : end.start() if end else len(text)]
        if end is None:
            found.unfinished = start["name"]
        found.add(start["name"], _ended(_unfenced(body)))
        at = end.end() if end else len(text)
    return "".join([*rest, text[at:]])


def _unfenced(body: str) -> str:
    """Take off a fence that stands around the whole of a tagged file."""
    lines = body.strip("\n").split("\n")
    first = _FENCE.match(lines[0])
    if first and len(lines) > 1 and lines[-1].strip() == first["fence"]:
        return "\n".join(lines[1:-1])
    return body


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _fences(text: str, found: Found) -> str:
    rest: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            rest.append(lines[at])
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if _closes(lines[i], fence["fence"])), None)
        label = next((i for i in range(len(rest) - 1, max(-1, len(rest) - 3), -1) if rest[i].strip()), None)
        name = _name_in(fence["info"]) or (_label(rest[label]) if label is not None else None)
        body = lines[at + 1 : end if end is not None else len(lines)]
        if name is None:
            rest += lines[at : (end if end is not None else len(lines) - 1) + 1]
        else:
            if not _name_in(fence["info"]) and label is not None:
                rest.pop(label)
            found.unfinished = name if end is None else found.unfinished
            found.add(name, _ended("\n".join(body)))
        at = end + 1 if end is not None else len(lines)
    return "\n".join(rest)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _name_in(info: str) -> str | None:
    named = _NAMED.search(info)
    if named:
        return named["name"]
    for word in (info.strip(), info.strip().partition(":")[2], info.strip().partition(" ")[2]):
        if _LOOKS.fullmatch(word.strip()):
            return word.strip()
    return None


def _label(line: str) -> str | None:
    found = _LABEL.match(line) if len(line) <= 400 else None
    name = found["name"].strip() if found else ""
    return name if _LOOKS.fullmatch(name) else None


def _json(text: str, found: Found) -> str:
    for start, end, value in _objects(text):
        files, note = _files_of(value)
        if not files:
            continue
        for name, content in files:
            found.add(name, content)
        return note if note is not None else text[:start] + text[end:]
    return text


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the JSON objects that the text is, or that stand in its fenced blocks."""
    places = [(0, len(text))]
    lines = text.split("\n")
    offset, begun = 0, None
    for line in lines:
        fence = _FENCE.match(line)
        if fence and begun is None:
            begun = offset + len(line) + 1
        elif begun is not None and _closes(line, "```"):
            places.append((begun, offset))
            begun = None
        offset += len(line) + 1
    for start, end in places:
        piece = text[start:end].strip()
        if piece.startswith("{"):
            try:
                value: Any = json.loads(piece)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield start, end, cast("dict[str, Any]", value)


def _files_of(value: dict[str, Any]) -> tuple[list[tuple[str, str]], str | None]:
    note: Any = value.get("note")
    listed: Any = value.get("files")
    if isinstance(listed, list):
        entries = [cast("dict[str, Any]", e) for e in cast("list[Any]", listed) if isinstance(e, dict)]
        pairs = [(str(e.get("name") or e.get("path") or ""), e.get("content", e.get("text"))) for e in entries]
    else:
        named = cast("dict[str, Any]", listed) if isinstance(listed, dict) else value
        pairs = [(name, content) for name, content in named.items() if listed is not None or _LOOKS.fullmatch(name)]
    return [(name, _text_of(content)) for name, content in pairs if content is not None], (
        note if isinstance(note, str) else None
    )


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2) + "\n"

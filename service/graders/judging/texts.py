"""A file of the evidence document as text for a judge: what it is called, what was found out, its parts in order."""

from collections.abc import Sequence
from typing import NamedTuple

from service.domain.evidence import EvidenceFile, Omitted
from service.domain.integrity import FileReport
from service.graders.judging.fencing import Fence, Harmless
from service.graders.judging.shares import head_and_tail
from service.graders.judging.visible import visible, visible_line

_PATH, _NOTE, _NOTES, _FACTS = 400, 300, 10, 20
"""Most characters of a name, of a note; most notes and facts of one file."""


class Cut(NamedTuple):
    """Text as it is shown, made harmless once for all questions."""

    head: Harmless
    left_out: int
    """Characters between head and tail."""
    tail: Harmless

    def blocks(self, fence: Fence, kind: str, of: str) -> list[str]:
        """Return the blocks, and in our words how much is left out ``of`` what."""
        pieces = [fence.block(kind, self.head)]
        if self.left_out:
            pieces.append(f"Here {self.left_out} characters of {of} are left out.")
        return [*pieces, fence.block(f"{kind} tail", self.tail)] if self.tail else pieces


def cut(text: Harmless, most: int) -> Cut:
    """Cut what is harmless already: making it so takes room, which counts."""
    head, left_out, tail = head_and_tail(text, most)
    return Cut(Harmless(head), left_out, Harmless(tail))


def name(file: EvidenceFile) -> str:
    return visible_line(file.path)[:_PATH]


def section(file: EvidenceFile) -> str:
    """Return all that is said of the file and all its text, what cannot be seen written out."""
    return _header(file) + _body(file, None)


def opening(files: Sequence[EvidenceFile], chars: int) -> list[str]:
    """Return the sections of files until their texts together have so many characters; empty strings after that."""
    sections: list[str] = []
    for file in files:
        sections.append(_header(file) + _body(file, chars) if chars > 0 else "")
        chars -= sum(len(visible(p.text)) for p in file.parts)
    return sections


def checked(file: FileReport) -> str:
    """Return a line of the integrity report."""
    is_what = f"claims {visible_line(file.claims or 'nothing')}, is {visible_line(file.sniffed or 'unknown')}"
    opens = {True: "opens", False: "does not open", None: "not looked at"}[file.opens]
    said = [f"{p.type.value} {visible_line(p.detail)}".rstrip() for p in file.problems]
    return f"{visible_line(file.path)[:_PATH]}: {opens}, {is_what}; {'; '.join(said) or 'no problem'}"


def not_taken(path: str, why: str) -> str:
    return f"{visible_line(path)[:_PATH]}: {visible_line(why)}"


def omitted(what: Omitted) -> str:
    counts = {"characters": what.chars, "rows": what.rows, "parts": what.parts, "pictures": what.images}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _header(file: EvidenceFile) -> str:
    lines = [f"name: {name(file)}", f"kind: {visible_line(file.kind)}"]
    if file.error is not None:
        lines.append(f"could not be read: {visible_line(file.error)} {visible_line(file.detail or '')}".rstrip())
    facts = [f"{visible_line(k)}={visible_line(str(v))[:_NOTE]}" for k, v in list(file.facts.items())[:_FACTS]]
    lines += [f"facts: {', '.join(facts)}"] if facts else []
    return "\n".join([*lines, *(f"note: {visible_line(note)[:_NOTE]}" for note in file.notes[:_NOTES]), ""])


def _body(file: EvidenceFile, most: int | None) -> str:
    pieces: list[str] = []
    for part in file.parts:
        text = visible(part.text)[:most]
        pieces.append(f"-- {part.kind} {visible_line(part.label)}".rstrip() + f"\n{text}")
        if most is not None and (most := most - len(text)) <= 0:
            break
    return "\n".join(pieces)

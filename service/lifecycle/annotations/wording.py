"""What is asked of an item, and what of the answer is an annotation.

All that is shown of an item was written by others and stands in data blocks. Their numbers follow from the set's seed, the item
and the vote, so that all annotators are asked the same, now and in a replay.
"""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from service.domain.annotations import (
    MOST_REASON,
    AnnotationSetSpec,
    Labels,
    Number,
    ShortText,
    Target,
    YesNo,
    value_of,
)
from service.domain.evidence import EvidenceDocument
from service.domain.placeholders import render
from service.domain.tasks import Facet, TaskManifest, canonical_digest
from service.graders.contract import InvalidVote, Question
from service.graders.judging import answers, texts
from service.graders.judging.fencing import Fence
from service.graders.judging.shares import head_and_tail
from service.graders.judging.visible import visible
from service.lifecycle.surveys.templates import template_text

MOST_SHOWN = 60_000
"""Characters of one item that are shown."""
MOST_FILES = 1_000


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    whole: str
    """The whole file."""
    text: dict[str, str]
    shown: dict[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """An item as it is shown: (heading of the template, kind of block, text) in order."""

    key: str
    """What it is by content."""
    blocks: tuple[tuple[str, str, str], ...]

    @property
    def chars(self) -> int:
        return sum(len(text) for _, _, text in self.blocks)


@dataclass(frozen=True, slots=True)
class Said:
    value: Facet
    reason: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    question: Question
    read: Callable[[str], Said]
    """Raises InvalidVote: not JSON, other keys, another value than was asked for."""


@cache
def template(name: str) -> Template:
    """Raises Invalid ``unknown_template``."""
    whole = template_text("annotation", name)
    found = tomllib.loads(whole)
    return Template(name, whole, found["text"], found["shown"])


def of_task(manifest: TaskManifest, about: Target) -> Shown:
    blocks = [("instruction", "instruction", _cut(manifest.instruction))]
    if about is Target.TASK:
        files = "\n".join(f"{f.path} ({f.size_bytes} bytes)" for f in manifest.visible[:MOST_FILES]) or "(none)"
        blocks.append(("files", "files", _cut(files)))
    return Shown(manifest.digest(), tuple(blocks))


def of_text(text: str) -> Shown:
    return Shown(canonical_digest(text), (("text", "item", _cut(text)),))


def of_document(digest: str, document: EvidenceDocument) -> Shown:
    sections = "\n\n".join(one for one in texts.opening(document.files, MOST_SHOWN) if one) or "(nothing)"
    return Shown(digest, (("deliverable", "deliverable", _cut(sections)),))


def asked(shape: Template, spec: AnnotationSetSpec, shown: Shown, n: int) -> Asked:
    """Return the question about an item for vote ``n``."""
    fence = Fence(canonical_digest([spec.seed, shown.key, spec.question, n])[:32])
    blocks = "\n\n".join(f"{shape.shown[head]}\n{fence.block(kind, text)}" for head, kind, text in shown.blocks)
    form = {"nonce": fence.nonce, **({"reason": "…"} if spec.reason else {}), "value": "…"}
    values = {
        "question": spec.question,
        "shown": blocks,
        "answer": json.dumps(form, ensure_ascii=False).replace('"value": "…"', '"value": …'),
        "shape": _shape(shape, spec.answer),
    }
    text = render(shape.text["question"], values).strip()
    if spec.reason:
        text += f"\n{shape.text['reason']}"
    system = render(shape.text["system"], {"fence": fence.rules()}).strip()

    def read(answer: str) -> Said:
        return _read(answer, fence.nonce, spec)

    return Asked(Question(system, text, shape.name, shape.whole), read)


def _read(answer: str, nonce: str, spec: AnnotationSetSpec) -> Said:
    found = answers.read_answer(answer, nonce, (*(["reason"] if spec.reason else []), "value"))
    try:
        value = value_of(spec.answer, found["value"])
    except ValueError:
        raise InvalidVote("value") from None
    return Said(value, answers.words(found["reason"], MOST_REASON) if spec.reason else None)


def _shape(shape: Template, of: Labels | Number | YesNo | ShortText) -> str:
    match of:
        case Labels():
            lines = "\n".join(f"- {name}: {means}" if means else f"- {name}" for name, means in of.labels.items())
            return render(shape.text["several" if of.several else "labels"], {"labels": lines})
        case Number():
            ends = {"least": f"{of.least:g}", "most": f"{of.most:g}"}
            return render(shape.text["whole" if of.whole else "number"], ends)
        case YesNo():
            return shape.text["boolean"]
        case ShortText():
            return render(shape.text["text"], {"most": str(of.most_chars)})


def _cut(text: str) -> str:
    head, left_out, tail = head_and_tail(visible(text), MOST_SHOWN)
    return f"{head}\n[{left_out} characters are left out here]\n{tail}" if left_out else head

"""What a forecaster is asked, and what of its answer is a forecast.

It sees what the agent is given, never a result or a judge's word. Posting and names of files were written by others and stand in
data blocks; the numbers of these follow from the set's seed, so that all forecasters are asked the same, now and in a replay.
"""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from service.domain.forecasts import MOST_REASON, ForecastPrompt, Said, Variant
from service.domain.placeholders import render
from service.domain.tasks import TaskManifest, canonical_digest
from service.graders.contract import InvalidVote, Question
from service.graders.judging import answers
from service.graders.judging.fencing import Fence
from service.lifecycle.surveys.templates import template_text

_SCALES = {
    "context_dependence": (1, 5),
    "verifiability": (1, 5),
    "autonomy_horizon": (1, 5),
    "tool_credential_surface": (0, 3),
    "deliverable_modality": (0, 1),
}
MOST_POSTING = 60_000
"""Characters of a posting that are shown."""
MOST_FILES = 1_000


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    text: str
    """The whole file."""
    system: dict[str, str]
    parts: dict[str, str]
    statements: dict[str, list[str]]


@cache
def template(name: str) -> Template:
    """Raises Invalid ``unknown_template``."""
    text = template_text("forecast", name)
    found = tomllib.loads(text)
    return Template(name, text, found["system"], found["text"], found["statements"])


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a set: the same for all of its forecasters."""

    question: Question
    nonce: str
    reason: bool

    def read(self, text: str) -> Said:
        """Return what the answer says. Raises InvalidVote: not JSON, other keys, a number outside its scale."""
        keys = ("p_hat", *_SCALES, *(["reason"] if self.reason else []))
        found = answers.read_answer(text, self.nonce, keys)
        values: dict[str, Any] = {"p_hat": _probability(found["p_hat"])}
        values |= {name: answers.whole(found[name], low, high) for name, (low, high) in _SCALES.items()}
        if self.reason:
            values["reason"] = answers.words(found["reason"], MOST_REASON)
        return Said(**values)


def asked(shape: Template, prompt: ForecastPrompt, manifest: TaskManifest, described: str | None, seed: int) -> Asked:
    """Return the question about a task. ``described``: what is said of the agent, null: the template's words."""
    fence = Fence(canonical_digest([seed, manifest.digest(), prompt.key])[:32])
    files = "\n".join(f"{f.path} ({f.size_bytes} bytes)" for f in manifest.visible[:MOST_FILES]) or "(none)"
    values = {
        "agent": described or shape.parts["agent"],
        "statements": _statements(shape, prompt.variant),
        "posting": fence.block("posting", manifest.instruction[:MOST_POSTING]),
        "files": fence.block("files", files),
        "answer": _shape(fence.nonce, reason=prompt.reason),
    }
    text = render(shape.parts["question"], values).strip()
    if prompt.reason:
        text += f"\n{shape.parts['reason']}"
    rules = render(shape.parts["rules"], {"fence": fence.rules()}).strip()
    said = Question(f"{shape.system[prompt.system.value]}\n\n{rules}", text, shape.name, shape.text)
    return Asked(said, fence.nonce, prompt.reason)


def _statements(shape: Template, variant: Variant) -> str:
    if variant is Variant.GENERIC:
        return ""
    if variant in (Variant.PLACEBO, Variant.MISSTATED):
        head, lines = variant.value, shape.statements[variant.value]
    else:
        head, lines = "limits", [shape.statements["limits"][n - 1] for n in variant.limits]
    return "\n".join(["", shape.parts[head], *(f"- {line}" for line in lines), ""])


def _shape(nonce: str, *, reason: bool) -> str:
    said = {"nonce": nonce, **({"reason": "…"} if reason else {}), "p_hat": 0.0, **dict.fromkeys(_SCALES, 0)}
    return json.dumps(said, ensure_ascii=False).replace(": 0.0", ": …").replace(": 0", ": …")


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidVote("p_hat")
    return float(value)

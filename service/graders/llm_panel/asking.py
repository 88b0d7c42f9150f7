"""What a judge of the panel is asked, and what of the answer is a vote."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from service.domain.judging import JudgeSpec
from service.domain.tasks import Price, TaskManifest
from service.graders.contract import GradingInput, InvalidVote, Question
from service.graders.judging import answers, canary
from service.graders.judging.fencing import Fence
from service.graders.judging.orders import shuffled
from service.graders.judging.panel import Asking
from service.graders.judging.prompts import Prompt, Shelf
from service.graders.judging.shares import head_and_tail
from service.graders.judging.showing import Material
from service.graders.llm_panel.counting import FIELDS, effective
from service.graders.llm_panel.settings import LlmPanelSettings

SHELF = Shelf(
    Path(__file__).parent / "prompt_texts",
    system=frozenset({"rules", "questions", "labels", "canary", "answer"}),
    text=frozenset({"posting", "client", "delivered"}),
)
CLIENT_CHARS = 60_000
"""Most of what the client knew, and of what was said to it."""
_QUESTIONS = {
    "produced": "there is work in it, as opposed to a plan, questions, or talk about work",
    "on_spec": "it does what the posting asks for, to the extent and in the form asked for",
    "client_plausible": "an ordinary client of such a job could take it for an acceptable result",
    "pay_worthy": "it is more likely than not that this client, knowing what you see, would pay the posted price for it",
    "fabricated": "it passes off as real what was made up: facts, figures, sources, results, access, qualifications",
}
_CHECK = "check"


@dataclass(frozen=True, slots=True)
class Panel:
    """All that the questions of one grading have in common."""

    given: GradingInput
    task: TaskManifest
    settings: LlmPanelSettings
    prompt: Prompt
    material: Material

    def asking(self, judge: JudgeSpec, n: int) -> Asking:
        del judge  # all are asked alike
        return Asking(partial(self.question, n), self.read)

    def question(self, n: int, fence: Fence) -> Question:
        fields = shuffled(FIELDS, self.given.seed, n) if self.settings.vary_order else FIELDS
        control = canary.statement(self.given.seed, "", n) if self.settings.canary else None
        shown = self.material.shown(n, images=True)
        system = {
            "rules": fence.rules(),
            "questions": "\n".join(f"- {name}: {_QUESTIONS[name]}" for name in fields),
            "labels": "\n".join(f"- {label.name}: {label.gloss}".rstrip(": ") for label in self.settings.labels),
            "canary": _control(control),
            "answer": _shape(fence.nonce, fields, with_check=control is not None),
        }
        text = {
            "posting": posting(self.task, fence),
            "client": client(self.given, fence),
            "delivered": shown.text_for(fence),
        }
        return self.prompt.question(system, text, shown.images)

    def read(self, text: str, nonce: str) -> dict[str, Any]:
        """Return {reasoning, five booleans, failure_reason} and, where a rule changed the vote, ``flag``.

        Raises InvalidVote.
        """
        keys = ("reasoning", *FIELDS, "failure_reason", *([_CHECK] if self.settings.canary else []))
        found = answers.read_answer(text, nonce, keys)
        if self.settings.canary:
            canary.check(found.pop(_CHECK))
        said = {name: answers.boolean(found[name]) for name in FIELDS}
        content = effective({"reasoning": answers.words(found["reasoning"]), **said})
        return {**content, "failure_reason": self._reason(found["failure_reason"], paying=content["pay_worthy"])}

    def _reason(self, value: Any, *, paying: bool) -> str | None:
        if value is None:
            return None
        if paying or value not in [label.name for label in self.settings.labels]:
            raise InvalidVote("failure_reason")
        return value


def posting(task: TaskManifest, fence: Fence) -> str:
    """Return what was asked for and what it is worth, as a data block: its author is a client of the past."""
    worth = "unknown" if task.price is None else _worth(task.price)
    return f"{fence.block('posting', task.instruction)}\n{fence.block('price', worth)}"


def client(given: GradingInput, fence: Fence) -> str:
    """Return what the client knew and what was said to it, where the run had one."""
    parts = (("client_facts", "What only the client knew:"), ("client_transcript", "What the client was asked:"))
    pieces: list[str] = []
    for name, said in parts:
        if text := given.extra.get(name):
            head, left_out, tail = head_and_tail(str(text), CLIENT_CHARS)
            pieces += ["", said, fence.block(name.replace("_", " "), head)]
            if left_out:
                pieces += [f"Here {left_out} characters are left out.", fence.block(name.replace("_", " "), tail)]
    return "\n".join(pieces)


def _worth(price: Price) -> str:
    if price.basis == "imputed":
        return f"about {price.amount} {price.currency} in all, estimated from the rate and the duration of the posting"
    said = f"{price.amount} {price.currency}, {price.rate_type}"
    if price.min is not None or price.max is not None:
        said += f" (from {price.min or price.amount} to {price.max or price.amount})"
    return said


def _control(statement: str | None) -> str:
    if statement is None:
        return ""
    return f'\nSay too, as "{_CHECK}", whether this holds of what was handed in: {statement}\n'


def _shape(nonce: str, fields: Sequence[str], *, with_check: bool) -> str:
    shape: dict[str, Any] = {"nonce": nonce, "reasoning": "…"}
    shape |= {_CHECK: {"reasoning": "…", "holds": "true or false"}} if with_check else {}
    shape |= dict.fromkeys(fields, "true or false") | {"failure_reason": "one of the words above, or null"}
    return json.dumps(shape, ensure_ascii=False, indent=1).replace('"true or false"', "true or false")

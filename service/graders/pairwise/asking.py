"""What a judge of two works is asked, in which order, and what of the answer is a vote."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from service.domain.judging import JudgeSpec
from service.domain.preferences import Choice, combined
from service.domain.tasks import TaskManifest
from service.graders.contract import InvalidVote, Question
from service.graders.judging import answers, canary
from service.graders.judging.fencing import Fence
from service.graders.judging.orders import drawn, shuffled
from service.graders.judging.panel import Asking
from service.graders.judging.prompts import Prompt, Shelf
from service.graders.judging.showing import Shown
from service.graders.pairwise.settings import PairwiseSettings
from service.graders.pairwise.works import Works

SHELF = Shelf(
    Path(__file__).parent / "prompt_texts",
    system=frozenset({"rules", "scales", "canary", "answer"}),
    text=frozenset({"brief", "works"}),
)
SCALES = {
    "completion": "which work comes closer to what the brief asks for, all of it and in the form asked for",
    "quality": "which work is the better one of its kind, whatever the brief says",
}
_CHECK = "check"


@dataclass(frozen=True, slots=True)
class Pair:
    """All that the questions of one grading have in common."""

    task: TaskManifest
    settings: PairwiseSettings
    prompt: Prompt
    works: Works
    seed: str

    def asking(self, judge: JudgeSpec, n: int) -> Asking:
        swapped = is_swapped(self.seed, judge, n)
        return Asking(partial(self.question, n, swapped=swapped), partial(self.read, swapped=swapped))

    def question(self, n: int, fence: Fence, *, swapped: bool) -> Question:
        """``swapped``: the reference is the first work."""
        shown = [self.works.deliverable.shown(n, images=True), self.works.reference.shown(n, images=True)]
        first, second = reversed(shown) if swapped else shown
        scales = shuffled(list(SCALES), self.seed, n) if self.settings.vary_order else list(SCALES)
        control = canary.statement(self.seed, "", n) if self.settings.canary else None
        system = {
            "rules": fence.rules(),
            "scales": "\n".join(f"- {name}: {SCALES[name]}" for name in scales),
            "canary": _control(control),
            "answer": _shape(fence.nonce, scales, with_check=control is not None),
        }
        text = {"brief": fence.block("brief", self.task.instruction), "works": _works(first, second, fence)}
        return self.prompt.question(system, text, [*first.images, *second.images])

    def read(self, text: str, nonce: str, *, swapped: bool) -> dict[str, Any]:
        """Return {reasoning, completion, quality, choice, shown}: choices as if the deliverable had been the first work.

        ``shown`` is the deliverable's place. Raises InvalidVote.
        """
        keys = ("reasoning", *SCALES, *([_CHECK] if self.settings.canary else []))
        found = answers.read_answer(text, nonce, keys)
        if self.settings.canary:
            canary.check(found.pop(_CHECK))
        said = {name: _choice(found[name], swapped=swapped) for name in SCALES}
        choice = combined(said["completion"], said["quality"], self.settings.combination)
        place = Choice.SECOND if swapped else Choice.FIRST
        return {"reasoning": answers.words(found["reasoning"]), **said, "choice": choice, "shown": place}


def is_swapped(seed: str, judge: JudgeSpec, n: int) -> bool:
    """Tell whether the reference comes first in vote ``n``: drawn for the odd votes, the other way round for the even."""
    odd = int(drawn("pair", seed, judge.key, (n + 1) // 2)[0], 16) % 2 == 1
    return odd if n % 2 else not odd


def _choice(value: Any, *, swapped: bool) -> Choice:
    if not isinstance(value, str) or value not in [c.value for c in Choice]:
        raise InvalidVote("schema")
    return Choice(value).swapped if swapped else Choice(value)


def _works(first: Shown, second: Shown, fence: Fence) -> str:
    pieces = ["The first work.", first.text_for(fence), "", "The second work.", second.text_for(fence)]
    if first.images or second.images:
        said = f"Of the attached pictures the first {len(first.images)} belong to the first work"
        pieces += ["", f"{said}, the other {len(second.images)} to the second."]
    return "\n".join(pieces)


def _control(statement: str | None) -> str:
    if statement is None:
        return ""
    return f'\nSay too, as "{_CHECK}", whether this holds of either work: {statement}\n'


def _shape(nonce: str, scales: Sequence[str], *, with_check: bool) -> str:
    shape: dict[str, Any] = {"nonce": nonce, "reasoning": "…"}
    shape |= {_CHECK: {"reasoning": "…", "holds": "true or false"}} if with_check else {}
    shape |= dict.fromkeys(scales, "first, same or second")
    return json.dumps(shape, ensure_ascii=False, indent=1).replace('"true or false"', "true or false")

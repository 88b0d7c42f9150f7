"""The question about one rubric, and the reading of its answer."""

from functools import partial
from typing import Any

from service.graders.contract import InvalidVote, Question
from service.graders.judging import answers, canary
from service.graders.judging.fencing import Fence
from service.graders.judging.orders import shuffled
from service.graders.judging.panel import Asking
from service.graders.judging.prompts import Prompt
from service.graders.judging.showing import Material
from service.graders.rubric_chain.looking import asks_for_looking
from service.graders.rubric_chain.rubrics_file import Rubric
from service.graders.rubric_chain.settings import RubricChainSettings

SYSTEM = frozenset({"data_rules", "rubric", "criteria", "control", "answer_format"})
TEXT = frozenset({"task", "delivered"})
TASK_CHARS = 50_000
_CONTROL = """\
A control statement, which is no criterion and counts for nothing in the rubric. Say whether it holds:
{statement}

"""
_FORMAT = """\
Answer with one JSON object and nothing around it, of exactly this shape:
{{"nonce": "{nonce}",
 "criteria_results": [{{"index": <the criterion's number>, "reasoning": "…", "evidence": "<file and place, quoted briefly>",
   "passed": true or false}}, … {count} in all, each number once],
{control} "overall_reasoning": "…", "rubric_passed": true if every criterion passed, else false}}"""
_CONTROL_FORMAT = ' "control": {"reasoning": "…", "holds": true or false},\n'


def wants_images(rubric: Rubric, settings: RubricChainSettings) -> bool:
    return settings.images == "always" or (settings.images == "auto" and asks_for_looking(rubric))


def asking(prompt: Prompt, material: Material, rubric: Rubric, task: str | None, n: int) -> Asking:
    """Return how vote ``n`` on the rubric is asked for and read. ``task``: null, or what the judge reads of the task."""
    return Asking(partial(_question, prompt, material, rubric, task, n), partial(_read, material, rubric))


def _question(prompt: Prompt, material: Material, rubric: Rubric, task: str | None, n: int, fence: Fence) -> Question:
    settings = material.settings
    assert isinstance(settings, RubricChainSettings)
    shown = material.shown(n, images=wants_images(rubric, settings))
    numbered = [f"{number}. {text}" for number, text in enumerate(rubric.criteria, 1)]
    control = canary.statement(material.seed, f"r{rubric.index}", n) if settings.canary else None
    system = {
        "data_rules": fence.rules(),
        "rubric": rubric.text,
        "criteria": "\n".join(shuffled(numbered, material.seed, n) if settings.vary_order else numbered),
        "control": _CONTROL.format(statement=control) if control else "",
        "answer_format": _FORMAT.format(
            nonce=fence.nonce, count=len(rubric.criteria), control=_CONTROL_FORMAT if control else ""
        ),
    }
    asked = "" if task is None else f"What was asked for:\n\n{fence.block('task', task)}\n\n"
    return prompt.question(system, {"task": asked, "delivered": shown.text_for(fence)}, shown.images)


def _read(material: Material, rubric: Rubric, text: str, nonce: str) -> dict[str, Any]:
    control = ("control",) if material.settings.canary else ()
    keys = ("criteria_results", "overall_reasoning", "rubric_passed", *control)
    found = answers.read_answer(text, nonce, keys)
    results = sorted((_result(r, rubric) for r in _results(found, rubric)), key=lambda r: int(r["index"]))
    if [r["index"] for r in results] != list(range(1, len(rubric.criteria) + 1)):
        raise InvalidVote("wrong_indices")
    passed = answers.boolean(found["rubric_passed"])
    if control:
        canary.check(found["control"])
    if passed != all(r["passed"] for r in results):
        raise InvalidVote("contradiction")
    overall = answers.words(found["overall_reasoning"])
    return {"criteria_results": results, "overall_reasoning": overall, "rubric_passed": passed}


def _results(found: dict[str, Any], rubric: Rubric) -> list[Any]:
    return answers.objects(found["criteria_results"], len(rubric.criteria))


def _result(value: Any, rubric: Rubric) -> dict[str, Any]:
    found = answers.exactly(value, ("index", "reasoning", "evidence", "passed"))
    return {
        "index": answers.whole(found["index"], 1, len(rubric.criteria)),
        "reasoning": answers.words(found["reasoning"]),
        "evidence": answers.words(found["evidence"]),
        "passed": answers.boolean(found["passed"]),
    }

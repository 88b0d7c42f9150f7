"""Method ``llm_panel``: 1 of 1 where the panel would pay, 0 where it would not; no verdict where it is of two minds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.judging import Vote
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict, VerdictState
from service.graders import parsing
from service.graders.contract import GraderFault, GradingInput
from service.graders.judging.fitting import fitting
from service.graders.judging.panel import judges_of, votes_of
from service.graders.judging.prompts import Prompt
from service.graders.judging.showing import Material, material_of, nothing_delivered
from service.graders.llm_panel.asking import SHELF, Panel
from service.graders.llm_panel.counting import (
    FIELDS,
    JudgeSaid,
    Majorities,
    PanelSaid,
    cause_of,
    judge_said,
    panel_said,
)
from service.graders.llm_panel.settings import NO_DELIVERABLE, UNLABELED, LlmPanelSettings


class LlmPanelGrader:
    method = "llm_panel"
    version = "1"
    queue: GradingQueue = "judges"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:  # noqa: ARG002 - any task will do
        SHELF.prompt(parsing.parsed(LlmPanelSettings, settings))

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(LlmPanelSettings, given.settings)
        prompt = _prompt(settings)
        judges_of(given, settings)
        if given.task is None:
            raise GraderFault("task_missing", "the method needs the task")
        material = await material_of(given, settings, images=True)
        if nothing_delivered(material.document):
            return _nothing(settings)
        task = given.task

        async def votes_with(shown: Material) -> list[Vote]:
            return await votes_of(given, settings, "", Panel(given, task, settings, prompt, shown).asking)

        votes, _ = await fitting(material, votes_with)
        return verdict_of(settings, votes)


def verdict_of(settings: LlmPanelSettings, votes: Sequence[Vote]) -> Verdict:
    """Count the votes. Raises GraderFault ``judge_error`` where too few judges decided."""
    said = [judge_said(j.key, [v for v in votes if v.judge == j.key], settings) for j in settings.judges]
    panel = panel_said(said, votes, settings)
    if panel is None:
        raise GraderFault("judge_error", f"fewer than {settings.needed_judges} judges decided: {_why_not(said)}")
    criteria = [_criterion(name, panel.fields, said) for name in FIELDS]
    detail = _detail(settings, panel, said)
    if panel.accepted is None:
        return Verdict(VerdictState.ABSTAINED, cause="panel_tied", criteria=criteria, detail=detail)
    score = 1.0 if panel.accepted else 0.0
    return Verdict(VerdictState.GRADED, score=score, max_score=1.0, criteria=criteria, detail=detail)


def _prompt(settings: LlmPanelSettings) -> Prompt:
    try:
        return SHELF.prompt(settings)
    except Invalid as error:
        raise GraderFault("settings_unusable", error.detail) from error


def _nothing(settings: LlmPanelSettings) -> Verdict:
    """No judge is asked about nothing."""
    known = [label.name for label in settings.labels]
    label = NO_DELIVERABLE if NO_DELIVERABLE in known else UNLABELED
    fields: Majorities = dict.fromkeys(FIELDS) | {"produced": False, "pay_worthy": False}
    panel = PanelSaid(False, fields, label, cause_of(label, settings.labels), unanimous=True)
    criteria = [{**_criterion(name, fields, []), "reason": "nothing was delivered"} for name in FIELDS]
    detail = _detail(settings, panel, []) | {"reason": "no_evidence"}
    return Verdict(VerdictState.GRADED, score=0.0, max_score=1.0, criteria=criteria, detail=detail)


def _criterion(name: str, fields: Majorities, said: Sequence[JudgeSaid]) -> dict[str, Any]:
    """``passed`` is what a client hopes for: so it is false where work was fabricated."""
    value = fields[name]
    passed = value if name != "fabricated" or value is None else not value
    points = 1.0 if name == "pay_worthy" else 0.0
    return {
        "id": name,
        "passed": passed,
        "score": None if value is None else points * bool(passed),
        "max_score": points,
        "reason": "",
        "detail": {"value": value, "judges": {s.judge: s.fields[name] for s in said}},
    }


def _detail(settings: LlmPanelSettings, panel: PanelSaid, said: Sequence[JudgeSaid]) -> dict[str, Any]:
    return {
        **asdict(panel),
        "reading": settings.reading,
        "panel": settings.panel,
        "judges": [asdict(s) for s in said],
        "decided": sum(s.decided for s in said),
        "quorum": settings.needed_judges,
        "votes": sum(s.votes for s in said),
        "valid": sum(s.valid for s in said),
        "flagged": sum(s.flagged for s in said),
    }


def _why_not(said: Sequence[JudgeSaid]) -> str:
    left = [s for s in said if not s.decided]
    return "; ".join(f"{s.judge}: {s.valid} of {s.votes} votes valid ({', '.join(s.causes) or 'tied'})" for s in left)

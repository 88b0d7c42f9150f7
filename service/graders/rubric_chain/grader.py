"""Method ``rubric_chain``: one question per rubric, all of them at once; each rubric's rows are written as it is decided."""

import asyncio
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from service.domain.errors import Invalid
from service.domain.grading_plans import GradingQueue
from service.domain.judging import JudgeSpec, Vote
from service.domain.tasks import TaskManifest
from service.domain.verdicts import Verdict
from service.graders import parsing
from service.graders.contract import GradingInput
from service.graders.judging.fencing import harmless
from service.graders.judging.fitting import fitting
from service.graders.judging.panel import Asking, judges_of, together, votes_of
from service.graders.judging.prompts import Prompt, Shelf
from service.graders.judging.showing import Material, evidence_of, material_of, nothing_delivered
from service.graders.rubric_chain import asking, rubrics_file, scoring
from service.graders.rubric_chain.rubrics_file import Rubric
from service.graders.rubric_chain.scoring import Decided
from service.graders.rubric_chain.settings import RubricChainSettings

ASKS = 2
"""JobBench asks once more, and then gives up."""
_SHELF = Shelf(Path(__file__).parent / "prompt_texts", asking.SYSTEM, asking.TEXT)


class RubricChainGrader:
    method = "rubric_chain"
    version = "1"
    queue: GradingQueue = "judges"

    def check_settings(self, settings: Mapping[str, Any], task: TaskManifest) -> None:
        parsed = parsing.parsed(RubricChainSettings, settings)
        _SHELF.prompt(parsed)
        if parsed.rubrics not in {f.path for f in task.hidden}:
            raise Invalid("unknown_hidden_asset", f"the task has no hidden file {parsed.rubrics!r}")

    async def grade(self, given: GradingInput) -> Verdict:
        settings = parsing.stored(RubricChainSettings, given.settings)
        judges_of(given, settings)
        prompt = _SHELF.stored(settings)
        rubrics = await asyncio.to_thread(rubrics_file.read, given, settings.rubrics)
        if nothing_delivered(await evidence_of(given).document()):
            return scoring.verdict([scoring.undelivered(r) for r in rubrics], {"reason": scoring.NO_EVIDENCE})
        images = any(asking.wants_images(r, settings) for r in rubrics)
        material = await material_of(given, settings, images=images)
        chain = _Chain(given, settings, prompt, material)
        starts = accumulate((1 + len(r.criteria) for r in rubrics), initial=0)
        decided = await together(chain.decide(r, start) for r, start in zip(rubrics, starts, strict=False))
        unread = sum(file.state == "failed" for file in material.document.files)
        about = {
            "reading": settings.reading,
            "evidence_chars": chain.evidence_chars,
            "images": len(material.pictures.shown),
            "unread_files": unread,
        }
        return scoring.verdict(decided, about)


class _Chain:
    def __init__(self, given: GradingInput, settings: RubricChainSettings, prompt: Prompt, material: Material) -> None:
        self._given, self._settings, self._prompt, self._material = given, settings, prompt, material
        task = given.task if settings.show_task else None
        self.evidence_chars = settings.evidence_chars
        """The least room that any question had."""
        self._task = None if task is None else harmless(task.instruction[: asking.TASK_CHARS])

    async def decide(self, rubric: Rubric, start: int) -> Decided:
        async def votes_with(material: Material) -> list[Vote]:
            def ask(_: JudgeSpec, n: int) -> Asking:
                return asking.asking(self._prompt, material, rubric, self._task, n)

            return await votes_of(self._given, self._settings, scoring.item(rubric), ask, ASKS)

        votes, shown = await fitting(self._material, votes_with)
        self.evidence_chars = min(self.evidence_chars, shown.settings.evidence_chars)
        decided = scoring.decide(rubric, votes)
        if self._given.keep is not None:
            await self._given.keep(start, decided.rows)
        return decided

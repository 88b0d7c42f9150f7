"""Grading methods by name. A dotted path is imported when its method is first used."""

from functools import cache
from importlib import import_module
from typing import cast

from service.domain.errors import Invalid
from service.domain.tasks import GraderSpec, TaskManifest
from service.graders.contract import Grader

METHODS = {
    "exact": "service.graders.exact.grader:ExactGrader",
    "human_panel": "service.graders.human_panel.grader:HumanPanelGrader",
    "integrity": "service.graders.integrity.grader:IntegrityGrader",
    "llm_panel": "service.graders.llm_panel.grader:LlmPanelGrader",
    "pairwise": "service.graders.pairwise.grader:PairwiseGrader",
    "script": "service.graders.script.grader:ScriptGrader",
    "rubric_chain": "service.graders.rubric_chain.grader:RubricChainGrader",
    "test_cases": "service.graders.test_cases.grader:TestCasesGrader",
}


@cache
def grader_for(method: str) -> Grader | None:
    """Return the grader of this method, or None where this installation has none."""
    path = METHODS.get(method)
    if path is None:
        return None
    module, _, name = path.partition(":")
    return cast(Grader, getattr(import_module(module), name)())


def check(spec: GraderSpec, task: TaskManifest) -> None:
    """Refuse a grader of a task that could never decide. Raises Invalid."""
    grader = grader_for(spec.method)
    if grader is None:
        detail = f"no grading method is called {spec.method!r}"
        raise Invalid("unknown_grading_method", detail, methods=sorted(METHODS))
    grader.check_settings(spec.settings, task)

"""The task that comes of a JobBench item, whatever it was read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workstead.importers.drafts import Draft
from workstead.importers.jobbench.instruction import INSTRUCTION, missing_files
from workstead.importers.jobbench.rubrics import FILE as RUBRICS
from workstead.importers.jobbench.settings import LIMITS, NAME, Settings
from workstead.importers.settings import network_fields

FOLDER, INSTRUCTIONS, CARD = "task_folder", "TASK_INSTRUCTIONS.txt", "task_card.md"


@dataclass(frozen=True, slots=True)
class Found:
    """What a source has of one item."""

    split: str
    occupation: str
    name: str
    text: str
    """Of the instructions."""
    visible: Sequence[dict[str, Any]]
    hidden: Sequence[dict[str, Any]]
    withheld: bool | None
    """Null: the source does not tell."""


class TaskMaker:
    def __init__(self, settings: Settings, mapping: Mapping[str, str]) -> None:
        """``mapping``: occupation → category. Raises InvalidInput for a deny list that no sandbox could heed, OSError."""
        self._settings, self._mapping = settings, mapping
        self._reach = network_fields(settings.network, settings)

    def task(self, found: Found, draft: Draft) -> dict[str, Any]:
        """Return the task, and remark on the draft what is worth knowing of it."""
        s = self._settings
        for name in missing_files(found.text, [str(ref["path"]) for ref in found.visible]):
            draft.note("named_file_missing", f"{FOLDER}/{INSTRUCTIONS}", f"{name} is listed and not there")
        if s.judge is None:
            detail = "no judge is named: option judge, or a grading plan of method rubric_chain"
            draft.note("grader_later", RUBRICS, detail)
        if s.network == "none":
            draft.note(
                "network_wanted", "", "the benchmark lets agents search the web; option network keeps them from it"
            )
        return {
            "name": f"{NAME}/{found.split}/{found.occupation}/{found.name}",
            "instruction": INSTRUCTION,
            "visible": list(found.visible),
            "hidden": list(found.hidden),
            "environment": s.environment or "workbench_full",
            "limits": s.limits(LIMITS),
            "facets": self._facets(found),
            "labels": s.labels,
            **self._reach,
            **({"graders": graders} if (graders := s.graders) else {}),
        }

    def _facets(self, found: Found) -> dict[str, Any]:
        category = self._mapping.get(found.occupation)
        return {
            "occupation": found.occupation,
            "split": found.split,
            # The task's own instructions are no reference file.
            "reference_files": float(len(found.visible) - 1),
            **({} if found.withheld is None else {"withheld": "yes" if found.withheld else "no"}),
            **({} if category is None else {"category": category}),
        }

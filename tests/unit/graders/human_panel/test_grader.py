"""The method that people decide: known, checked, and never decided by a process."""

import io

import pytest

from service.domain.errors import Invalid
from service.domain.tasks import GraderSpec, TaskManifest
from service.graders.contract import GraderFault, GradingInput
from service.graders.human_panel.grader import HumanPanelGrader
from service.graders.registry import check, grader_for

TASK = TaskManifest(name="t/one", instruction="Do it.")


def test_it_is_known_and_waits_for_people() -> None:
    grader = grader_for("human_panel")
    assert isinstance(grader, HumanPanelGrader)
    assert grader.queue == "people"
    check(GraderSpec(method="human_panel"), TASK)


def test_settings_that_nobody_reads_are_refused() -> None:
    with pytest.raises(Invalid):
        check(GraderSpec(method="human_panel", settings={"judges": 3}), TASK)


async def test_no_process_decides() -> None:
    given = GradingInput({}, [], lambda _: io.BytesIO(), lambda _: io.BytesIO())
    with pytest.raises(GraderFault) as caught:
        await HumanPanelGrader().grade(given)
    assert caught.value.type == "people_decide"

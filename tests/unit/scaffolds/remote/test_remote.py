import pytest

from service.domain.agents import Driver
from service.domain.errors import Invalid
from service.domain.run_states import ExitReport
from service.scaffolds import registry
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, task


def test_nothing_is_started_and_nothing_hidden_is_written() -> None:
    scaffold = registry.scaffold_for("remote")
    plan = scaffold.plan(task(), AGENT, manifest(kind="remote"), CONTEXT)
    assert (list(plan.argv), list(plan.files), list(plan.written), plan.stdin) == ([], [], [], b"")
    assert plan.env["WORKSTEAD_OUTPUT_DIR"] == "/workspace/output"
    assert scaffold.driver is Driver.REMOTE


def test_the_drivers_word_decides_completed() -> None:
    scaffold = registry.scaffold_for("remote")
    said = [scaffold.completed(ExitReport(code, None, 1.0, None), manifest(kind="remote"), None) for code in (0, 1)]
    assert said == [True, False]


def test_a_kit_is_allowed_and_a_command_is_not() -> None:
    registry.check(manifest(kind="remote", kit="x"))
    with pytest.raises(Invalid):
        registry.check(manifest(kind="remote", argv=["x"]))

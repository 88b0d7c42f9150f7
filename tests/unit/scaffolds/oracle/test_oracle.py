import pytest

from service.domain.errors import Invalid
from service.scaffolds import registry
from service.scaffolds.oracle.scaffold import OracleScaffold
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, ref, task

MANIFEST = manifest(kind="oracle")


@pytest.mark.fault(78)
def test_only_the_solution_enters_and_the_plan_says_so() -> None:
    hidden = [
        ref("answers.json", "b"),
        ref("rubric/solution/x", "c"),
        ref("solution/a.csv"),
        ref("solution/output/b.csv"),
    ]
    plan = OracleScaffold().plan(task(hidden=hidden), AGENT, MANIFEST, CONTEXT)
    assert [f.path for f in plan.files] == ["output/a.csv", "output/b.csv"]
    assert {f.sha256 for f in plan.files} == {"a" * 64}
    assert plan.reference_solution


def test_other_collect_roots_are_targets_too() -> None:
    hidden = [ref("solution/app/x"), ref("solution/y")]
    plan = OracleScaffold().plan(task(hidden=hidden, collect=["app", "output"]), AGENT, MANIFEST, CONTEXT)
    assert [f.path for f in plan.files] == ["app/x", "output/y"]


def test_a_solution_that_is_a_program_is_run_where_nothing_is_collected() -> None:
    hidden = [ref("answers.json", "b"), ref("solution/solve.sh"), ref("solution/lib/x.py")]
    plan = OracleScaffold().plan(task(hidden=hidden), AGENT, MANIFEST, CONTEXT)
    assert plan.argv == ["/bin/bash", f"{CONTEXT.workspace}/.home/solution/solve.sh"]
    assert [f.path for f in plan.files] == [".home/solution/solve.sh", ".home/solution/lib/x.py"]
    assert plan.reference_solution


def test_a_task_without_a_solution_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        OracleScaffold().plan(task(hidden=[ref("answers.json")]), AGENT, MANIFEST, CONTEXT)
    assert caught.value.type == "no_reference_solution"


def test_it_takes_no_command() -> None:
    with pytest.raises(Invalid) as caught:
        registry.check(manifest(kind="oracle", argv=["x"]))
    assert caught.value.type == "not_for_this_kind"

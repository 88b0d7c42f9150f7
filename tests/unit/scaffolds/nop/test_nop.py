import pytest

from service.domain.errors import Invalid
from service.scaffolds import registry
from service.scaffolds.nop.scaffold import NopScaffold
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, ref, task


def test_it_writes_nothing() -> None:
    plan = NopScaffold().plan(task(hidden=[ref("solution/a")]), AGENT, manifest(kind="nop"), CONTEXT)
    assert (list(plan.files), plan.stdin, plan.reference_solution) == ([], b"", False)


def test_it_takes_no_kit() -> None:
    with pytest.raises(Invalid):
        registry.check(manifest(kind="nop", kit="x"))

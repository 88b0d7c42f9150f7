import pytest

from service.domain.agents import Driver
from service.domain.errors import Invalid
from service.scaffolds import registry
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, task


def test_it_is_uploaded_only() -> None:
    scaffold = registry.scaffold_for("external")
    assert scaffold.driver is Driver.EXTERNAL
    assert list(scaffold.plan(task(), AGENT, manifest(kind="external"), CONTEXT).argv) == []


@pytest.mark.parametrize("field", [{"argv": ["x"]}, {"kit": "x"}, {"env": {"A": "b"}}])
def test_it_takes_nothing_that_would_be_run(field: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        registry.check(manifest(kind="external", **field))

from service.domain.agents import Driver
from service.scaffolds import registry
from tests.unit.scaffolds.build import AGENT, CONTEXT, manifest, task


def test_a_person_gets_the_files_and_no_program() -> None:
    scaffold = registry.scaffold_for("person")
    assert scaffold.driver is Driver.PERSON
    assert list(scaffold.plan(task(), AGENT, manifest(kind="person"), CONTEXT).argv) == []

import pytest

from service.domain.agents import AgentSettings
from service.domain.errors import Invalid
from service.domain.models import Dialect
from service.scaffolds import efforts
from tests.unit.scaffolds.programs import model

PROGRAM = ("minimal", "low", "medium", "high", "xhigh")


@pytest.mark.parametrize(
    ("asked", "accepted", "used"),
    [
        ("default", ("low", "high"), None),
        ("max", ("low", "high"), "high"),
        ("max", ("low", "high", "xhigh", "max"), "xhigh"),
        ("max", (), None),
        ("max", ("think",), None),
        ("low", ("low", "high"), "low"),
    ],
)
def test_resolved(asked: str, accepted: tuple[str, ...], used: str | None) -> None:
    found = efforts.resolve(AgentSettings(effort=asked), model(Dialect.OPENAI, efforts=accepted), PROGRAM)
    assert found.provenance() == {"effort": used, "effort_asked": asked}


@pytest.mark.parametrize(("asked", "accepted"), [("xhigh", ("low",)), ("think", ("think",)), ("low", ())])
def test_what_one_of_both_does_not_know_is_refused(asked: str, accepted: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as error:
        efforts.resolve(AgentSettings(effort=asked), model(Dialect.OPENAI, efforts=accepted), PROGRAM)
    assert error.value.type == "unsupported_effort"

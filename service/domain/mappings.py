"""How a program's output lines become events, as data of a scaffold manifest (NEEDS C3)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.domain.tasks import Strict

JsonPath = Annotated[str, Field(pattern=r"^\$", max_length=300)]
"""A JSONPath without filters; its first match counts."""
Value = str | int | float | bool | None


class Condition(Strict):
    """Holds for a line whose value at ``path`` is as one of these says; with none of them: if there is one."""

    path: JsonPath
    equals: Value = None
    one_of: list[Value] = Field(default_factory=list[Value], max_length=32)
    starts_with: str | None = Field(default=None, max_length=300)
    contains: str | None = Field(default=None, max_length=300)
    absent: bool = False
    """Turned round: there is no value at ``path``."""


class MappingRule(Strict):
    """One kind of event. Every rule that holds for a line is applied, in order."""

    when: list[Condition] = Field(min_length=1, max_length=8)
    each: JsonPath | None = None
    """A list inside the line: the rule is applied to each of its objects, whose paths then begin at ``$``."""
    emit: Literal[
        "agent.message", "agent.thinking", "agent.warning", "agent.usage", "agent.final", "tool.call", "tool.result"
    ]
    fields: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")], str] = Field(
        default_factory=dict[str, str], max_length=16
    )
    """Field of the event → a JSONPath (begins with ``$``), or literal text (``$$`` stands for a dollar at its start)."""


class EndRule(Strict):
    """What an ending means, if everything that is set here holds."""

    exit_codes: list[int] = Field(default_factory=list[int], max_length=64)
    final_status: list[Literal["success", "error", "limit", "none"]] = Field(
        default_factory=list[Literal["success", "error", "limit", "none"]]
    )
    """``status`` of the last ``agent.final``; ``none``: there was none."""
    completed: bool

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.exit_codes and not self.final_status:
            raise ValueError("a rule of an ending names exit_codes or final_status")
        return self

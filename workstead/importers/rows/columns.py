"""The fields of a row, checked."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from workstead.importers.fields import Filled, Loose, Text
from workstead.importers.files import MAX_FILES
from workstead.importers.mapping import TableNumber

FIELDS = (
    *("id", "prompt", "files", "solution", "rubric", "answer", "answer_type", "tolerance", "choices"),
    *("price", "currency", "pay_type", "human_hours", "facet."),
)
REQUIRED = ("id", "prompt")
AnswerType = Literal["int", "float", "string", "bool", "list", "choice"]


def _text_id(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Path = Annotated[str, Field(min_length=1, max_length=1_000)]
_Paths = Annotated[list[_Path], BeforeValidator(as_list), Field(max_length=MAX_FILES)]


class Fields(Loose):
    id: Annotated[Filled, BeforeValidator(_text_id)]
    prompt: Filled
    files: _Paths | None = None
    solution: _Paths | None = None
    rubric: Any = None
    answer: Any = None
    answer_type: AnswerType | None = None
    tolerance: Annotated[TableNumber, Field(ge=0, le=1_000_000_000)] | None = None
    choices: Annotated[list[Text], Field(min_length=2, max_length=256)] | None = None
    price: Annotated[TableNumber, Field(ge=0, lt=10**15)] | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    pay_type: Literal["fixed", "hourly"] | None = None
    human_hours: Annotated[TableNumber, Field(ge=0, le=100_000)] | None = None

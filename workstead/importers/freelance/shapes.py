"""The two shapes of an item. Shape A: a program and its tests. Shape B: multiple choice and transformations of text."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from workstead.importers.fields import Filled, Loose, Number, Text

Id = Annotated[int | str, Field(union_mode="left_to_right")]
MAX_TESTS = 1_000


def _kept_tags(value: Any) -> Any:
    # A missing tag is NaN in the released file, which reads as null.
    return [tag for tag in value if tag is not None] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _letter(value: str) -> str:
    letter = value.strip().upper()
    if len(letter) != 1 or letter not in "ABCD":
        raise ValueError("must be a letter from A to D")
    return letter


Tags = Annotated[list[Annotated[str, Field(max_length=256)]], BeforeValidator(_kept_tags), Field(max_length=64)]
Points = Annotated[Number, Field(gt=0, le=1_000_000)]


class Case(Loose):
    input: Text
    output: Text


class Program(Loose):
    """Shape A."""

    id: Id
    title: Filled
    description: Filled
    tags: Tags = Field(default_factory=list[str])
    price: Any = None
    tests: list[Case] = Field(max_length=MAX_TESTS)


class Choice(Loose):
    question: Filled
    choices: list[Filled] = Field(min_length=2, max_length=4)
    correct_answer: Annotated[str, AfterValidator(_letter)]
    points: Points
    explanation: Text = ""


class Transformation(Loose):
    input_text: Text
    expected_output: Text
    points: Points
    explanation: Text = ""


class Metadata(Loose):
    project_id: Id
    job_title: Filled
    job_description: Filled
    tags: Tags = Field(default_factory=list[str])
    pricing: Any = None


class Content(Loose):
    introduction: Text = ""
    multiple_choice: list[Choice] = Field(default_factory=list[Choice], max_length=MAX_TESTS)
    string_transformations: list[Transformation] = Field(default_factory=list[Transformation], max_length=MAX_TESTS)
    passing_score: Annotated[Number, Field(ge=0, le=1_000_000)]
    time_limit: Any = None


class Answers(Loose):
    """Shape B."""

    metadata: Metadata
    test_content: Content


Shape = Literal["a", "b"]


def shape_of(item: Any) -> Shape | None:
    """Tell the shape by the fields that only it has."""
    if not isinstance(item, dict):
        return None
    if "test_content" in item and "metadata" in item:
        return "b"
    return "a" if "tests" in item else None

"""Annotations: what models or people say of items one by one, and the facets that follow from it (NEEDS A18).

A set has a name and a version. Once it is accepted it never changes and its values are a facet of tasks called
``name@version``, wherever a facet is named: selections, lists, groupings, options of reports, rules of derived benchmarks.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from service.domain.benchmarks import Slug
from service.domain.evaluations import MOST_TASKS, Reference, Seed, TaskSelection
from service.domain.judging import JudgeSpec
from service.domain.models import TokenUsage
from service.domain.tasks import LABELS, Facet, Strict

MOST_ANNOTATORS, MOST_VOTES, MOST_LABELS = 16, 9, 64
MOST_ANNOTATIONS = 100_000
"""Of one set."""
MOST_TEXTS, MOST_TEXT = 1_000, 20_000
MOST_TEXTS_CHARS = 2_000_000
"""Of all texts of a set together."""
MOST_REASON = 4_000
"""Characters of a reason that are kept."""
MOST_BROUGHT = 2_000
"""Of one call."""
MOST_SHORT = 200
"""Characters of a value: what facets are compared by."""
TEMPLATE = "annotation@1"
PERSON = "person"
_OVERLAY = re.compile(r"[a-z][a-z0-9_]{0,63}@[1-9]\d{0,5}", re.ASCII)
Label = Annotated[str, Field(pattern=r"^[^\s;][^;\n]{0,99}$")]


class Target(StrEnum):
    """What is shown of an item."""

    INSTRUCTION = "instruction"
    """The task's instruction."""
    TASK = "task"
    """And the names of the files that the agent is given."""
    DELIVERABLE = "deliverable"
    """The evidence document of what a run delivered."""
    TEXT = "text"
    """A text that came with the request."""


class Labels(Strict):
    """One of a closed list, or any number of them."""

    kind: Literal["labels"]
    labels: dict[Label, Annotated[str, Field(max_length=500)]] = Field(min_length=2, max_length=MOST_LABELS)
    """Label → what it means."""
    several: bool = False


class Number(Strict):
    kind: Literal["number"]
    least: float = Field(ge=-1_000_000, le=1_000_000)
    most: float = Field(ge=-1_000_000, le=1_000_000)
    whole: bool = True

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least >= self.most:
            raise ValueError("least is below most")
        return self


class YesNo(Strict):
    """As a facet ``yes`` or ``no``."""

    kind: Literal["boolean"]


class ShortText(Strict):
    kind: Literal["text"]
    most_chars: int = Field(default=MOST_SHORT, ge=1, le=MOST_SHORT)


Shape = Annotated[Labels | Number | YesNo | ShortText, Field(discriminator="kind")]


class AnnotationState(StrEnum):
    """How one vote ended; only answered ones count, the others are in none and counted."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """The model would not say."""
    UNREADABLE = "unreadable"
    """No answer fitted, the second one included."""
    EXCLUDED = "excluded"
    """There is nothing to show: no deliverable, or none that can be read."""
    FAILED = "failed"
    """It could not be asked (no such model, refused, budget); ``start`` with ``retry_failed`` asks again."""


class AnnotatorSpec(JudgeSpec):
    """A model that annotates."""

    max_output_tokens: int = Field(default=4_096, ge=256, le=100_000)
    """Thinking included; twice as many for the second question."""


class AnnotationSetSpec(Strict):
    """What was asked for; texts are kept apart."""

    name: Slug
    """Of the facet; the version is counted on."""
    about: Target = Target.TASK
    benchmark: Reference | None = None
    """Id, ``name@version``, or a name: its newest version."""
    task_ids: list[Reference] = Field(default_factory=list[str], max_length=MOST_TASKS)
    """Tasks without a benchmark."""
    tasks: TaskSelection = Field(default_factory=TaskSelection)
    run_ids: list[Reference] = Field(default_factory=list[str], max_length=MOST_TASKS)
    """Of deliverables: runs that delivered."""
    question: Annotated[str, Field(min_length=1, max_length=8_000)]
    """What is asked of each item, in words; the shape of the answer is added."""
    answer: Shape
    reason: bool = True
    """Whether a reason is asked for before the answer."""
    annotators: list[AnnotatorSpec] = Field(default_factory=list[AnnotatorSpec], max_length=MOST_ANNOTATORS)
    """Empty: people's labels are brought."""
    votes: int = Field(default=1, ge=1, le=MOST_VOTES)
    """Of each annotator on each item."""
    template: Annotated[str, Field(max_length=64)] = TEMPLATE
    seed: Seed = 0
    """Of the draw of tasks, and of the numbers that fence off what others wrote."""
    labels: LABELS = Field(default_factory=dict[str, str])
    notes: Annotated[str, Field(max_length=10_000)] = ""


class AnnotationSetRequest(AnnotationSetSpec):
    """What a client asks for."""

    texts: dict[
        Annotated[str, Field(min_length=1, max_length=256)], Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
    ] = Field(default_factory=dict[str, str], max_length=MOST_TEXTS)
    """Id → text."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        of_tasks = self.about in (Target.INSTRUCTION, Target.TASK)
        if of_tasks and (self.benchmark is None) == (not self.task_ids):
            raise ValueError("name either a benchmark or task_ids")
        if not of_tasks and (self.benchmark is not None or self.task_ids):
            raise ValueError(f"an annotation of {self.about}s names no tasks")
        if (self.about is Target.DELIVERABLE) != bool(self.run_ids) or (self.about is Target.TEXT) != bool(self.texts):
            raise ValueError("run_ids are named of deliverables and texts of texts, and of nothing else")
        if sum(map(len, self.texts.values())) > MOST_TEXTS_CHARS:
            raise ValueError(f"texts have at most {MOST_TEXTS_CHARS} characters together")
        if len({one.key for one in self.annotators}) != len(self.annotators):
            raise ValueError("an annotator is there twice")
        return self

    def kept(self) -> AnnotationSetSpec:
        return AnnotationSetSpec.model_validate(self.model_dump(exclude={"texts"}))


class BroughtAnnotation(Strict):
    """What a person says of one item: it decides, whatever models voted."""

    target: Reference
    """Item key or task id, run id, or id of the text."""
    value: str | float | bool | list[str]
    """As the set's answer is; also as text: numbers, yes and no, labels separated by ``;``."""
    reason: Annotated[str, Field(max_length=MOST_REASON)] | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """One vote as it is recorded."""

    target: str
    """Task id, run id, or id of the text."""
    annotator: str
    """Key; ``person``."""
    n: int
    """Vote, from 1."""
    state: AnnotationState
    value: Facet | None = None
    reason: str | None = None
    model: str | None = None
    """Catalogue name."""
    reported_model: str | None = None
    author: str | None = None
    """API token of a person's."""
    asks: int = 0
    cause: str | None = None
    """Why it is not answered."""
    rendered_sha256: str | None = None
    """Of what was asked: a blob of JSON {system, text}."""
    usage: TokenUsage | None = None
    cost_usd: Decimal | None = None


def value_of(shape: Labels | Number | YesNo | ShortText, given: Any) -> Facet:
    """Return the facet that an answer is. Raises ValueError for what does not fit."""
    match shape:
        case Labels():
            return _labels(shape, given)
        case Number():
            if isinstance(given, bool) or not isinstance(given, int | float) or not shape.least <= given <= shape.most:
                raise ValueError(f"a number from {shape.least:g} to {shape.most:g} is asked for")
            if shape.whole and not float(given).is_integer():
                raise ValueError("a whole number is asked for")
            return float(given)
        case YesNo():
            if not isinstance(given, bool):
                raise ValueError("true or false is asked for")
            return "yes" if given else "no"
        case ShortText():
            text = " ".join(given.split()) if isinstance(given, str) else ""
            if not text or len(text) > shape.most_chars:
                raise ValueError(f"a text of 1 to {shape.most_chars} characters is asked for")
            return text


def brought_value(shape: Labels | Number | YesNo | ShortText, given: str | float | bool | list[str]) -> Facet:
    """Return the facet that a person's word is, also where it is written as text. Raises ValueError."""
    if not isinstance(given, str):
        return value_of(shape, given)
    text = given.strip()
    match shape:
        case Labels(several=True):
            return value_of(shape, [part.strip() for part in text.split(";") if part.strip()])
        case Number():
            try:
                return value_of(shape, float(text))
            except ValueError:
                raise ValueError(f"a number from {shape.least:g} to {shape.most:g} is asked for") from None
        case YesNo():
            known = {"yes": True, "no": False, "true": True, "false": False}
            return value_of(shape, known.get(text.lower()))
        case _:
            return value_of(shape, text)


def overlays_of(names: Iterable[str]) -> list[str]:
    """Return those names of facets that are ``name@version`` of annotations, sorted."""
    return sorted({name for name in names if _OVERLAY.fullmatch(name)})


def overlays_in(settings: Any) -> list[str]:
    """Return what a report's settings name of annotations: under ``grouping``, and under names with ``facet`` in them."""
    return overlays_of(_named(settings, counts=False))


def _named(value: Any, *, counts: bool) -> Iterable[str]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _named(inner, counts=key == "grouping" or "facet" in key)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _named(inner, counts=counts)
    elif counts and isinstance(value, str):
        yield value


def _labels(shape: Labels, given: Any) -> Facet:
    if not shape.several:
        if not isinstance(given, str) or given not in shape.labels:
            raise ValueError(f"one of {', '.join(shape.labels)} is asked for"[:500])
        return given
    found = cast("list[Any]", given) if isinstance(given, list) else [None]
    if any(not isinstance(one, str) or one not in shape.labels for one in found) or len(set(found)) != len(found):
        raise ValueError(f"a list of {', '.join(shape.labels)} is asked for, each once"[:500])
    return [name for name in shape.labels if name in found]

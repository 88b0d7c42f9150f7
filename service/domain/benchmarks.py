"""Benchmarks: named, versioned sets of tasks that an importer made from a source at a pinned revision."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol, Self, cast

from pydantic import Field, ValidationError, model_validator

from service.domain.tasks import LABELS, Facet, FacetName, Name, Sha256, Strict, TaskManifest, canonical_digest

MAX_ITEMS = 20_000
MAX_PROBLEMS = 100
"""Of one item."""
MAX_FACET_VALUES = 100
"""Of one facet in a summary; the rarest are left out, and counted."""
Text = Annotated[str, Field(max_length=2_000)]
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class ItemStatus(StrEnum):
    OK = "ok"
    DISPUTED = "disputed"
    """Usable, but its answers are contested: runs by default, and every table can leave it out by name."""
    QUARANTINED = "quarantined"
    """Not run unless asked for by key."""


class ItemProblem(Strict):
    """What an importer found wrong with an item."""

    type: Slug
    where: Text = ""
    """File, field or pointer within the source."""
    detail: Text = ""


class BenchmarkItem(Strict):
    key: Annotated[str, Field(min_length=1, max_length=256)]
    """The item's id in its source, unique within the benchmark."""
    task: TaskManifest | None = None
    """Null where no task could be made of it."""
    status: ItemStatus = ItemStatus.OK
    problems: list[ItemProblem] = Field(default_factory=list[ItemProblem], max_length=MAX_PROBLEMS)

    @model_validator(mode="after")
    def _reasoned(self) -> Self:
        if self.task is None and self.status is not ItemStatus.QUARANTINED:
            raise ValueError("an item without a task is quarantined")
        if self.status is not ItemStatus.OK and not self.problems:
            raise ValueError(f"an item that is {self.status} says why")
        return self

    def refused(self, type: str, where: str, detail: str) -> "BenchmarkItem":
        """Return this item without its task, in quarantine for this reason."""
        problem = ItemProblem(type=type, where=where[:2_000], detail=detail[:2_000])
        problems = [*self.problems[: MAX_PROBLEMS - 1], problem]
        return BenchmarkItem(key=self.key, status=ItemStatus.QUARANTINED, problems=problems)


class Source(Strict):
    """Where a benchmark came from; enough to import it again and compare."""

    importer: Slug
    importer_version: Annotated[str, Field(max_length=32)]
    uri: Text = ""
    """As the importer was given it; no credentials."""
    revision: Annotated[str, Field(max_length=128)] | None = None
    files_digest: Sha256 | None = None
    """Of the list of (path, sha256) that was read."""


class Policies(Strict):
    """How results of this benchmark are counted (NEEDS A29); the header of each of its reports."""

    no_deliverable: Literal["zero", "exclude", "as_graded"] = "as_graded"
    partial_after_limit: Literal["grade", "zero", "exclude"] = "grade"
    clock: Literal["wall", "working"] = "wall"
    missing: Literal["zero", "exclude", "refuse"] = "zero"


class Grouping(Strict):
    """Columns of a table by a facet of the tasks (NEEDS A16)."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/@-]{0,127}$")]
    facet: FacetName
    merges: dict[str, list[str]] = Field(default_factory=dict[str, list[str]], max_length=64)
    """Column → values of the facet that it takes together."""


class BenchmarkHead(Strict):
    """Everything of a benchmark but its items."""

    name: Name
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]
    source: Source
    notice: Annotated[str, Field(max_length=10_000)] = ""
    """Licence, terms, citation: printed under every table, page and export (NEEDS A10)."""
    deny_list: list[Annotated[str, Field(max_length=253)]] = Field(default_factory=list[str], max_length=1_000)
    """Hosts that publish this benchmark's answers (NEEDS A3)."""
    canaries: list[Annotated[str, Field(max_length=512)]] = Field(default_factory=list[str], max_length=1_000)
    policies: Policies = Field(default_factory=Policies)
    groupings: list[Grouping] = Field(default_factory=list[Grouping], max_length=32)
    labels: LABELS = Field(default_factory=dict[str, str])


class BenchmarkManifest(BenchmarkHead):
    """What a client brings. The bytes of the tasks' files are in the content store already, or are asked for."""

    items: list[BenchmarkItem] = Field(min_length=1, max_length=MAX_ITEMS)

    @model_validator(mode="after")
    def _keys_are_unique(self) -> Self:
        if len({item.key for item in self.items}) != len(self.items):
            raise ValueError("two items have the same key")
        return self

    def head(self) -> BenchmarkHead:
        return BenchmarkHead.model_validate(self.model_dump(exclude={"items"}))

    def digest(self) -> str:
        """Return the sha256 of the head and of each item's key, task digest, status and problems."""
        digests = [None if item.task is None else item.task.digest() for item in self.items]
        return outline_digest(self.head(), self.items, digests)


def manifest_of(value: Any) -> BenchmarkManifest:
    """Read a manifest from JSON. A task that is no task costs its item, not the benchmark: quarantined, with the reason.

    Raises ValidationError for everything else that does not fit.
    """
    body = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    items = None if body is None else body.get("items")
    if body is not None and isinstance(items, list) and len(cast("list[Any]", items)) <= MAX_ITEMS:
        return BenchmarkManifest.model_validate({**body, "items": [_tolerated(i) for i in cast("list[Any]", items)]})
    return BenchmarkManifest.model_validate(value)


def _tolerated(item: Any) -> Any:
    body = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    if not isinstance(body.get("task"), dict):
        return cast("object", item)
    try:
        return {**body, "task": TaskManifest.model_validate(body["task"])}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    where = "/".join(["task", *(str(part) for part in first["loc"])])
    problem = {"type": "invalid_task", "where": where[:2_000], "detail": str(first["msg"])[:2_000]}
    given = body.get("problems", [])
    if isinstance(given, list):
        given = [*cast("list[Any]", given)[: MAX_PROBLEMS - 1], problem]
    return {**body, "task": None, "status": ItemStatus.QUARANTINED, "problems": given}


class Faceted(Protocol):
    @property
    def facets(self) -> Mapping[str, Facet]: ...


def facet_summary(tasks: Iterable[Faceted]) -> dict[str, Any]:
    """Return, for each facet of ``tasks``: how many have it, how many values it has, and the most frequent ones' counts.

    A list counts each of its values once per task.
    """
    having: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    for task in tasks:
        having.update(task.facets.keys())
        for name, facet in task.facets.items():
            values.setdefault(name, Counter()).update(facet_values(facet))
    return {
        name: {"tasks": having[name], "distinct": len(found), "values": dict(found.most_common(MAX_FACET_VALUES))}
        for name, found in sorted(values.items())
    }


def facet_values(facet: Facet) -> set[str]:
    """Return a facet's values as text, each cut to 200 characters; a number without needless places."""
    if isinstance(facet, int | float):
        return {str(int(facet)) if float(facet).is_integer() else repr(facet)}
    return {value[:200] for value in ([facet] if isinstance(facet, str) else facet)}


def outline_digest(head: BenchmarkHead, items: Sequence[BenchmarkItem], digests: Sequence[str | None]) -> str:
    """Return the digest of a manifest whose tasks' digests are known already."""
    outline = [
        [item.key, digest, item.status, [problem.model_dump(mode="json") for problem in item.problems]]
        for item, digest in zip(items, digests, strict=True)
    ]
    return canonical_digest([head.model_dump(mode="json"), outline])

"""The query of the run list: filters, sort, ``fields`` (NEEDS D5)."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict

from service.api.listing import chosen, split_ids
from service.api.prefixed import only_known, prefixed
from service.api.run_view import Run
from service.domain.errors import Invalid
from service.store.rows import RunFilter
from service.store.run_filters import SORTS

_SEVERAL = Query(max_length=32)


class RunQuery(BaseModel):
    """Filters hold together; a filter given several times holds if one of its values does."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    agent_id: Annotated[list[str], _SEVERAL] = []
    task_id: Annotated[list[str], _SEVERAL] = []
    phase: Annotated[list[str], _SEVERAL] = []
    outcome: Annotated[list[str], _SEVERAL] = []
    ended_because: Annotated[list[str], _SEVERAL] = []
    flag: Annotated[list[str], _SEVERAL] = []
    model: Annotated[list[str], _SEVERAL] = []
    scaffold: Annotated[list[str], _SEVERAL] = []
    benchmark_id: Annotated[list[str], _SEVERAL] = []
    evaluation_id: Annotated[list[str], _SEVERAL] = []
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    updated_after: AwareDatetime | None = None
    ids: str | None = None
    """Up to 200 ids, separated by commas."""
    sort: str = "-created_at"
    """created_at | -created_at | updated_at | -updated_at | score | -score; ties by id."""
    fields: str | None = None
    """Names of top-level members to return, separated by commas; ``id`` always comes."""
    total: bool = False
    """Whether to count all that the filter matches."""


Queried = Annotated[RunQuery, Query()]


def run_filter(request: Request, query: RunQuery) -> RunFilter:
    """Return the filter. Raises Invalid for an unknown parameter, too many ids, an unknown sort."""
    only_known(request, {*RunQuery.model_fields, "limit", "cursor"})
    if query.sort not in SORTS:
        raise Invalid("unknown_sort", "this list cannot be sorted so", known=list(SORTS))
    return RunFilter(
        ids=split_ids(query.ids),
        agent_id=tuple(query.agent_id),
        task_id=tuple(query.task_id),
        phase=tuple(query.phase),
        outcome=tuple(query.outcome),
        ended_because=tuple(query.ended_because),
        flag=tuple(query.flag),
        model=tuple(query.model),
        scaffold=tuple(query.scaffold),
        labels=prefixed(request, "label."),
        facets=prefixed(request, "facet."),
        benchmark_id=tuple(query.benchmark_id),
        evaluation_id=tuple(query.evaluation_id),
        created_after=query.created_after,
        created_before=query.created_before,
        updated_after=query.updated_after,
    )


def chosen_fields(query: RunQuery) -> set[str] | None:
    """Return the members to show, or None for all. Raises Invalid for a name that a run does not have."""
    return chosen(query.fields, Run)

"""Many runs at once, by the filters of the run list or by their ids (NEEDS B17, B18)."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from service.domain.regrades import MOST_RUNS, Reference, RunChoice


class RunsMeant(RunChoice):
    """As the filters of ``GET /v1/runs``; at least one is given, so that nobody means everything by mistake."""

    ids: Annotated[tuple[Reference, ...], Field(max_length=MOST_RUNS)] = ()

    @model_validator(mode="after")
    def _something(self) -> Self:
        values: list[Any] = [getattr(self, name) for name in type(self).model_fields]
        if not any(value for value in values):
            raise ValueError("name at least one filter")
        return self

"""What a rule made of a benchmark, as clients see it."""

from service.api.benchmark_view import Benchmark
from service.api.rendering import Digest, View, sha256_name
from service.lifecycle.benchmark_deriving import Derived, counts


class DerivedStratum(View):
    name: str
    """Value of the facet; ``(none)``: of items that have none."""
    fitting: int
    taken: int


class Derivation(View):
    benchmark: Benchmark | None
    """Null: only counted."""
    digest: Digest
    """Of the benchmark that it is, or would be."""
    fitting: int
    """Items that the query lets through."""
    taken: int
    strata: list[DerivedStratum]
    empty: list[str]
    """Strata that were wanted and that nothing fits."""
    useless: list[str]
    """Patterns that match no item."""


def derivation_view(found: Derived, made: Benchmark | None) -> Derivation:
    return Derivation.model_validate({**counts(found.chosen), "benchmark": made, "digest": sha256_name(found.digest)})

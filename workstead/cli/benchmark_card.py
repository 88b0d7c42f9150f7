"""``workstead benchmarks card``: a benchmark on one page."""

from typing import Any

from workstead.cli.common import facts, line, out
from workstead.cli.tables import plain_table
from workstead.models_benchmarks import BenchmarkCard

MAX_VALUES, MAX_FORMATS = 12, 20
_PLACES = ("min", "p10", "p25", "p50", "p75", "p90", "max")


def show_card(card: BenchmarkCard) -> None:
    related = card.price_and_hours
    r = related.get("r")
    facts(
        {
            "benchmark": f"{card.name}@{card.version}",
            "items": ", ".join(f"{card.counts.get(s, 0)} {s}" for s in ("ok", "disputed", "quarantined")),
            "policies": ", ".join(f"{k}={v}" for k, v in card.policies.items()),
            "groupings": ", ".join(str(g["name"]) for g in card.groupings),
            "prices rest on": ", ".join(f"{basis} {n}" for basis, n in card.price_basis.items()),
            "log price, log hours": None if r is None else f"r = {r:.3f} over {related.get('n')} items",
        }
    )
    spreads = [("price, USD", card.price_usd), ("human time, h", card.human_hours)]
    rows = [_spread(name, found) for name, found in spreads if found is not None]
    if rows:
        out.print(plain_table(("of usable items", "n", "missing", *_PLACES, "mean", "total"), rows))
    facets = {**card.facets, **card.overlays}
    if facets:
        out.print(plain_table(("facet", "items", "distinct", "most frequent"), [_facet(*of) for of in facets.items()]))
    if card.formats:
        shown = [(f["suffix"] or "none", f["tasks"], f["files"], f["size_bytes"]) for f in card.formats[:MAX_FORMATS]]
        out.print(plain_table(("visible files", "tasks", "files", "bytes"), shown))
    if card.notice:
        line(card.notice, "dim")


def _spread(name: str, found: dict[str, Any]) -> tuple[object, ...]:
    figures = (f"{float(found[place]):,.2f}" for place in (*_PLACES, "mean", "total"))
    return (name, found["n"], found["missing"], *figures)


def _facet(name: str, found: dict[str, Any]) -> tuple[object, ...]:
    values = list(dict[str, int](found.get("values", {})).items())
    more = [f"{len(values) - MAX_VALUES} more"] if len(values) > MAX_VALUES else []
    most = ", ".join([*(f"{value} {n}" for value, n in values[:MAX_VALUES]), *more])
    return name, found.get("tasks"), found.get("distinct"), most

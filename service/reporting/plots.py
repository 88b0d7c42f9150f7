"""Figures of report tables as SVG or PNG, drawn by altair without a browser, a network or a file.

``ReportTable.plot`` says what is drawn: ``mark`` (bar, line, step, point or area), the columns ``x`` and ``y``, and where wanted
``color`` and ``sort`` (``none`` keeps the rows' order, else by value). Intervals of the y column are drawn with it.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import altair as alt
import vl_convert

from service.domain.errors import Invalid
from service.domain.reports import ReportColumn, ReportTable

MOST_POINTS = 20_000
"""Rows that one figure draws; of more, every nth."""
WIDTH, HEIGHT, SCALE = 640, 360, 2
_MARKS = frozenset({"bar", "line", "step", "point", "area"})
_SHARES = frozenset({"fraction"})


def svg(table: ReportTable) -> bytes:
    """Raises Invalid ``nothing_to_draw``."""
    drawn = vl_convert.vegalite_to_svg(specification(table), vl_version=_version(), allowed_base_urls=[])
    return drawn.encode()


def png(table: ReportTable) -> bytes:
    """Raises Invalid ``nothing_to_draw``."""
    return vl_convert.vegalite_to_png(specification(table), vl_version=_version(), scale=SCALE, allowed_base_urls=[])


def specification(table: ReportTable) -> dict[str, Any]:
    """Return the figure in Vega-Lite, its data included; the same for the same table. Raises Invalid ``nothing_to_draw``."""
    plot = table.plot or {}
    columns = {column.name: column for column in table.columns}
    x, y = columns.get(str(plot.get("x"))), columns.get(str(plot.get("y")))
    if x is None or y is None or plot.get("mark") not in _MARKS:
        raise Invalid("nothing_to_draw", f"the table {table.name!r} has no figure")
    color = columns.get(str(plot.get("color")))
    chart = _chart(plot, _values(table, x, y, color), x, y, color)
    spec = cast("dict[str, Any]", chart.properties(width=WIDTH, height=HEIGHT, title=table.title).to_dict())
    return cast("dict[str, Any]", json.loads(json.dumps(spec, sort_keys=True, allow_nan=False)))


def _values(table: ReportTable, x: ReportColumn, y: ReportColumn, color: ReportColumn | None) -> list[dict[str, Any]]:
    """Return the rows under names of ours: those of columns could be taken for paths."""
    names = {"x": x.name, "y": y.name}
    if color is not None:
        names["color"] = color.name
    if y.interval is not None:
        names |= {"low": f"{y.interval}_low", "high": f"{y.interval}_high"}
    rows = [{key: row.get(name) for key, name in names.items()} for row in table.rows]
    drawn = [row for row in rows if row["x"] is not None and row["y"] is not None]
    return drawn[:: -(-len(drawn) // MOST_POINTS) or 1]


def _chart(
    plot: Mapping[str, Any],
    values: list[dict[str, Any]],
    x: ReportColumn,
    y: ReportColumn,
    color: ReportColumn | None,
) -> Any:
    base = alt.Chart(alt.Data(values=values))
    mark = plot["mark"]
    marked = {
        "bar": base.mark_bar,
        "line": lambda: base.mark_line(point=True),
        "step": lambda: base.mark_line(interpolate="step-after"),
        "point": lambda: base.mark_point(filled=True),
        "area": lambda: base.mark_area(opacity=0.5),
    }[mark]()
    across = alt.X("x", type=_type_of(values, "x"), title=x.title, sort=_order(plot), axis=_axis(x))
    encoded: dict[str, Any] = {"x": across, "y": alt.Y("y", type="quantitative", title=y.title, axis=_axis(y))}
    if color is not None:
        encoded["color"] = alt.Color("color", type="nominal", title=color.title)
        if mark == "bar":
            encoded["xOffset"] = alt.XOffset("color", type="nominal")
    drawn = marked.encode(**encoded)
    if y.interval is None:
        return drawn
    offset = {"xOffset": encoded["xOffset"]} if "xOffset" in encoded else {}
    ends: dict[str, Any] = {"y": alt.Y("low", type="quantitative", title=y.title), "y2": alt.Y2("high"), **offset}
    return alt.layer(drawn, base.mark_rule(strokeWidth=1.5).encode(x=across, **ends))


def _type_of(values: list[dict[str, Any]], name: str) -> Any:
    found = [row[name] for row in values]
    if found and all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return "quantitative"
    return "temporal" if found and all(_is_moment(value) for value in found) else "nominal"


def _is_moment(value: object) -> bool:
    """A day or a moment as RFC 3339 writes it."""
    return isinstance(value, str) and len(value) >= 10 and value[:4].isdecimal() and value[4] == value[7] == "-"


def _order(plot: Mapping[str, Any]) -> Any:
    return None if plot.get("sort", "none") == "none" else "-y"


def _axis(column: ReportColumn) -> Any:
    return alt.Axis(format=".0%") if column.unit in _SHARES else alt.Axis()


def _version() -> str:
    """The Vega-Lite that altair writes: ``v6.1.0`` is ``6.1``."""
    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])

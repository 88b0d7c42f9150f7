"""A chart as text: its titles, and of each series where its data come from and the values that it remembers."""

from collections.abc import Iterator

from service.evidence.extraction.inside.packages import Node

POINTS = 50
"""Of a series."""
_PLACES = {"tx": "name", "cat": "categories", "val": "values", "xVal": "x", "yVal": "y", "bubbleSize": "sizes"}


def chart_text(top: Node) -> str:
    kinds = [node.name for area in top.all("plotArea") for node in area.children if node.name.endswith("Chart")]
    lines = [f"chart: {', '.join(kinds)}"]
    lines += [f"title: {words}" for title in top.all("title") if (words := _words(title))]
    for series in top.all("ser"):
        fields = (f"{word}: {_data(node)}" for name, word in _PLACES.items() if (node := series.child(name)))
        lines.append("series: " + "; ".join(fields))
    return "\n".join(lines)


def _words(node: Node) -> str:
    return "".join(text.text for text in node.all("t", "v")).strip()


def _data(node: Node) -> str:
    formula = next(node.all("f"), None)
    points = list(_points(node))
    shown = ", ".join(points[:POINTS]) + (f" … ({len(points) - POINTS} more)" if len(points) > POINTS else "")
    return (f"{formula.text} = " if formula else "") + shown


def _points(node: Node) -> Iterator[str]:
    return (value.text for value in node.all("v"))

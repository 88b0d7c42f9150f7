"""Stock in a database, and a chart that claims to show it: which bar is wrong?"""

import sqlite3
from pathlib import Path
from typing import Any

from PIL import Image
from readers import csv_rows
from report import deliver, say

STOCK = """
SELECT p.sku, p.name, p.unit_cost, p.reorder_level, coalesce(sum(m.quantity), 0) AS units
FROM product p LEFT JOIN movement m ON m.sku = p.sku GROUP BY p.sku ORDER BY p.sku
"""
PER_WAREHOUSE = """
SELECT w.name, coalesce(sum(m.quantity), 0) FROM warehouse w LEFT JOIN movement m ON m.warehouse_id = w.id GROUP BY w.id
"""


def solve(workspace: Path, output: Path) -> None:
    products, stock = read_database(workspace / "inventory.sqlite")
    size, bars = read_chart(workspace / "chart.png", csv_rows(workspace / "legend.csv"))
    off = {name: abs(shown - stock[name]) - per_pixel for name, (shown, per_pixel) in bars.items()}
    wrong = max(off, key=off.__getitem__)
    low = [sku for sku, _, _, level, units in products if units < level]
    answers = {
        "stock_units": sum(p[4] for p in products),
        "stock_value": round(sum(p[2] * p[4] for p in products), 2),
        "below_reorder": low,
        "chart_size": list(size),
        "tallest_bar": max(bars, key=lambda name: bars[name][0]),
        "wrong_bar": wrong,
        "wrong_bar_units": stock[wrong],
    }
    findings = [
        f"{answers['stock_units']} units worth {answers['stock_value']:.2f} are in stock",
        f"below the reorder level: {', '.join(low)}",
        f"the chart shows {bars[wrong][0]:.0f} units for {wrong}, the database has {stock[wrong]}",
    ]
    columns = ["sku", "name", "unit cost", "reorder level", "units"]
    deliver(output, "January stock", answers, findings, columns, [list(p) for p in products])


def read_database(path: Path) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    database = sqlite3.connect(path)
    products = database.execute(STOCK).fetchall()
    stock = dict(database.execute(PER_WAREHOUSE).fetchall())
    database.close()
    say(f"read inventory.sqlite: {len(products)} products in {len(stock)} warehouses")
    return products, stock


def read_chart(path: Path, legend: list[dict[str, str]]) -> tuple[tuple[int, int], dict[str, tuple[float, float]]]:
    """Return the size, and warehouse → (units shown, units per pixel), from the height of each colour."""
    image = Image.open(path).convert("RGB")
    pixels: Any = image.load()
    bars: dict[str, tuple[float, float]] = {}
    for entry in legend:
        colour = tuple(bytes.fromhex(entry["colour"].lstrip("#")))
        rows = {y for y in range(image.height) for x in range(image.width) if pixels[x, y] == colour}
        per_pixel = float(entry["units_per_pixel"])
        bars[entry["warehouse"]] = (len(rows) * per_pixel, per_pixel)
        say(f"chart: the bar of {entry['warehouse']} is {len(rows)} pixels high")
    return image.size, bars

"""Make ready task directories from the readable sources: ``python -m demo.make_files TARGET``.

``demo/tasks/<name>/source`` holds csv, json, txt and sql; this writes the office files that an agent will see.
"""

import csv
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from demo.office import Sheet, write_docx, write_pdf, write_xlsx

TASKS = Path(__file__).resolve().parent / "tasks"
Row = dict[str, str]


def make(target: Path) -> list[Path]:
    """Make every task directory below ``target``, which must not hold them yet; return them."""
    made: list[Path] = []
    for name, build in BUILDERS.items():
        folder = target / name
        shutil.copytree(TASKS / name, folder, ignore=shutil.ignore_patterns("source"))
        (folder / "visible").mkdir()
        build(TASKS / name / "source", folder / "visible")
        solution = folder / "hidden/solution/output"
        solution.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "hidden/answers.json", solution / "answers.json")
        made.append(folder)
    return made


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def build_invoices(source: Path, visible: Path) -> None:
    orders = _rows(source / "orders.csv")
    shutil.copyfile(source / "payments.csv", visible / "payments.csv")
    sheets, values = _order_sheets(orders)
    write_xlsx(visible / "orders.xlsx", sheets, values)
    (visible / "invoices").mkdir()
    for number, lines in groupby(_rows(source / "invoices.csv"), key=lambda r: r["invoice"]):
        write_pdf(visible / "invoices" / f"{number}.pdf", [_invoice(list(lines))])


def _order_sheets(orders: Sequence[Row]) -> tuple[dict[str, Sheet], dict[tuple[str, str], float]]:
    sheets: dict[str, Any] = {"Orders": [["order", "supplier", "item", "quantity", "unit_price", "line_total"]]}
    values: dict[tuple[str, str], float] = {}
    for i, o in enumerate(orders, start=2):
        quantity, price = int(o["quantity"]), float(o["unit_price"])
        sheets["Orders"].append([o["order"], o["supplier"], o["item"], quantity, price, f"=D{i}*E{i}"])
        values["Orders", f"F{i}"] = round(quantity * price, 4)
    last = len(orders) + 1
    sheets["Totals"] = [["order", "total"]]
    for i, name in enumerate(dict.fromkeys(o["order"] for o in orders), start=2):
        sheets["Totals"].append([name, f"=SUMIF(Orders!A$2:A${last},A{i},Orders!F$2:F${last})"])
        amounts = [int(o["quantity"]) * float(o["unit_price"]) for o in orders if o["order"] == name]
        values["Totals", f"B{i}"] = round(sum(amounts), 4)
    return sheets, values


def _invoice(lines: Sequence[Row]) -> list[str]:
    head = lines[0]
    total = sum(int(r["quantity"]) * float(r["unit_price"]) for r in lines)
    table = [_invoice_line(r) for r in lines]
    return [
        head["supplier"],
        "",
        f"INVOICE {head['invoice']}",
        f"Date:        {head['date']}",
        f"Your order:  {head['order']}",
        "",
        f"{'Item':<34}{'Quantity':>10}{'Unit price':>14}{'Amount':>14}",
        *table,
        "",
        f"{'Total GBP':<58}{total:>14,.2f}",
        "",
        "Payable within 30 days. Thank you for your business.",
    ]


def _invoice_line(r: Row) -> str:
    price = float(r["unit_price"])
    amount = int(r["quantity"]) * price
    return f"{r['item']:<34}{r['quantity']:>10}{price:>14.3f}{amount:>14,.2f}"


def build_contract(source: Path, visible: Path) -> None:
    text = json.loads((source / "agreement.json").read_text(encoding="utf-8"))
    write_docx(visible / "agreement.docx", text["title"], text["paragraphs"], text["fees"])
    pages = (source / "amendment.txt").read_text(encoding="utf-8").split("%%page\n")
    write_pdf(visible / "amendment.pdf", [page.splitlines() for page in pages])


def build_inventory(source: Path, visible: Path) -> None:
    database = sqlite3.connect(visible / "inventory.sqlite")
    database.executescript((source / "inventory.sql").read_text(encoding="utf-8"))
    database.commit()
    database.close()
    chart = json.loads((source / "chart.json").read_text(encoding="utf-8"))
    _draw(chart, visible / "chart.png")
    with (visible / "legend.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["colour", "warehouse", "units_per_pixel"])
        table.writerows([b["colour"], b["warehouse"], chart["units_per_pixel"]] for b in chart["bars"])


def _draw(chart: dict[str, Any], path: Path) -> None:
    image = Image.new("RGB", (chart["width"], chart["height"]), "white")
    draw = ImageDraw.Draw(image)
    base = chart["baseline_y"]
    step = chart["width"] // len(chart["bars"])
    for i, bar in enumerate(chart["bars"]):
        left = i * step + (step - chart["bar_width"]) // 2
        height = round(bar["units"] / chart["units_per_pixel"])
        draw.rectangle((left, base - height, left + chart["bar_width"] - 1, base - 1), fill=bar["colour"])
    draw.line((10, base, chart["width"] - 10, base), fill="black")
    image.save(path)


BUILDERS: dict[str, Callable[[Path, Path], None]] = {
    "invoice-reconciliation": build_invoices,
    "contract-facts": build_contract,
    "inventory-audit": build_inventory,
}

if __name__ == "__main__":
    for directory in make(Path(sys.argv[1])):
        sys.stdout.write(f"{directory}\n")

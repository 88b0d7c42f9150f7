"""Orders in a workbook, invoices as PDF, payments in a CSV: what does not fit together?"""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import openpyxl
from readers import csv_rows, find, number, pdf_text
from report import deliver, say


def solve(workspace: Path, output: Path) -> None:
    orders = read_orders(workspace / "orders.xlsx")
    invoices = [read_invoice(path) for path in sorted((workspace / "invoices").glob("*.pdf"))]
    paid = read_payments(workspace / "payments.csv", [i["number"] for i in invoices])
    excess = {i["number"]: i["total"] - orders[i["order"]] for i in invoices if i["order"] in orders}
    over = {name: amount for name, amount in excess.items() if amount > 0.004}
    due = {i["number"]: i["total"] - paid[i["number"]] for i in invoices}
    unpaid = {name: amount for name, amount in due.items() if amount > 0.004}
    unknown = [i["number"] for i in invoices if i["order"] not in orders]
    answers = {
        "orders_total": round(sum(orders.values()), 2),
        "invoiced_total": round(sum(i["total"] for i in invoices), 2),
        "overbilled_invoices": sorted(over),
        "overbilled_amount": round(sum(over.values()), 2),
        "invoices_without_order": unknown,
        "unpaid_invoices": sorted(unpaid),
        "outstanding": round(sum(unpaid.values()), 2),
    }
    findings = [f"{name} is {amount:.2f} above its order" for name, amount in sorted(over.items())]
    findings += [f"{name} names an order that is not in the workbook" for name in unknown]
    findings += [f"{name}: {amount:.2f} are not paid" for name, amount in sorted(unpaid.items())]
    columns = ["invoice", "order", "invoiced", "ordered", "paid", "outstanding"]
    rows = [
        [i["number"], i["order"], i["total"], orders.get(i["order"]), paid[i["number"]], round(due[i["number"]], 2)]
        for i in invoices
    ]
    deliver(output, "Supplier reconciliation", answers, findings, columns, rows)


def read_orders(path: Path) -> dict[str, float]:
    """Return order → total, from quantities and prices; the workbook's stored results must say the same."""
    formulas: Any = openpyxl.load_workbook(path)["Orders"]
    stored: Any = openpyxl.load_workbook(path, data_only=True)["Orders"]
    totals: dict[str, float] = defaultdict(float)
    for row, values in zip(formulas.iter_rows(min_row=2), stored.iter_rows(min_row=2, values_only=True), strict=True):
        order, quantity, price, formula = row[0].value, row[3].value, row[4].value, row[5].value
        line = quantity * price
        if not str(formula).startswith("=") or abs(values[5] - line) > 0.001:
            say(f"orders.xlsx row {row[0].row}: stored {values[5]}, computed {line}")
        totals[order] += line
    say(f"read orders.xlsx: {len(totals)} orders, {sum(totals.values()):.2f}")
    return dict(totals)


def read_invoice(path: Path) -> dict[str, Any]:
    text = pdf_text(path)
    name = find(r"^INVOICE (\S+)", text)
    order = find(r"^Your order:\s+(\S+)", text)
    total = number(find(r"^Total GBP\s+([\d,.]+)", text))
    lines = re.findall(r"^(\S.*?)\s{2,}(\d+)\s+(\d+\.\d+)\s+([\d,]+\.\d\d)$", text, re.MULTILINE)
    if abs(sum(int(q) * float(p) for _, q, p, _ in lines) - total) > 0.005:
        say(f"{name}: the lines do not add up to {total:.2f}")
    say(f"read {path.name}: {name} for {order}, {len(lines)} lines, {total:.2f}")
    return {"number": name, "order": order, "total": total}


def read_payments(path: Path, numbers: list[str]) -> dict[str, float]:
    paid: dict[str, float] = defaultdict(float)
    rows = csv_rows(path)
    for row in rows:
        matches = [n for n in numbers if n in row["reference"]]
        if len(matches) == 1:
            paid[matches[0]] += number(row["amount"])
        else:
            say(f"payment {row['reference']!r} fits {len(matches)} invoices")
    say(f"read payments.csv: {len(rows)} payments, {sum(paid.values()):.2f}")
    return paid

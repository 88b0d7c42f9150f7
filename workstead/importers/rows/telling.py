"""What an agent is told of a row, and what tables know of it."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from workstead.importers.amounts import money
from workstead.importers.drafts import Draft
from workstead.importers.rows.columns import Fields
from workstead.importers.untrusted import Absurd

MAX_FACETS, MAX_VALUES, MAX_FACET_CHARS = 64, 64, 1_000
OUTPUT_RULE = "Save the finished deliverables, and only those, in /workspace/output."
_FACET = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}\Z")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "a text",
    "bool": "true or false",
    "list": "a list in order",
    "choice": "one of the choices as a text",
}


def answer_told(kind: str) -> str:
    return f'Write your answer to /workspace/output/answer.json: {{"answer": …}}, {_KINDS[kind]}.'


def facets_of(values: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the values of fields ``facet.<name>``; what makes no facet is remarked and left out."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if not name.startswith("facet.") or value is None:
            continue
        facet, short = _facet(value), name.removeprefix("facet.")
        if facet is None or not _FACET.match(short) or len(found) == MAX_FACETS:
            draft.note(
                "bad_facet", name, "has an odd name, is no text, number or list of texts, too long, or one too many"
            )
        else:
            found[short] = facet
    return found


def _facet(value: Any) -> str | float | list[str] | None:
    if isinstance(value, bool | Absurd):
        return str(value).lower() if isinstance(value, bool) else None
    if isinstance(value, int | Decimal):
        return float(value)
    if isinstance(value, str):
        return value if len(value) <= MAX_FACET_CHARS else None
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    usable = 0 < len(listed) <= MAX_VALUES and all(isinstance(v, str) and len(v) <= MAX_FACET_CHARS for v in listed)
    return listed if usable else None


def price_of(fields: Fields, draft: Draft) -> dict[str, Any] | None:
    if fields.price is None:
        return None
    if fields.currency is None:
        draft.note("bad_price", "currency", "a price without a currency says nothing; it is left out")
        return None
    amount = money(fields.price)
    return {
        "amount": amount,
        "currency": fields.currency,
        "usd": amount if fields.currency == "USD" else None,
        "basis": "posted",
        "rate_type": fields.pay_type or "fixed",
    }


def instruction_of(prompt: str, paths: list[str], told: str) -> str:
    listed = "".join(f"- /workspace/{path}\n" for path in paths)
    given = f"Files that you are given:\n{listed}\n" if paths else ""
    return f"{prompt.rstrip()}\n\n{given}{told}\n"

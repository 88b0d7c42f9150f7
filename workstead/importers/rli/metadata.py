"""What a project is worth and took: from ``project/metadata.json``, which few copies have, and from a file of the user's."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast

from workstead.importers.amounts import Amount, money, parse_amount
from workstead.importers.drafts import Draft
from workstead.importers.rli.layout import METADATA, PROJECT
from workstead.importers.untrusted import read_json, unstorable
from workstead.task_dir import InvalidInput

MAX_BYTES = 16 << 20
PRICE, HOURS = "total_project_cost", "human_completion_hours"
MOST_HOURS = Decimal(100_000)
_KINDS = {"reported": "reported", "professional_estimate": "estimated", "estimated": "estimated"}
Metadata = Mapping[str, Any]
Basis = Literal["reported", "midpoint", "estimated"]


def read_metadata(path: Path | None) -> dict[str, Metadata]:
    """Read an object, project → metadata. Raises InvalidInput, OSError."""
    if path is None:
        return {}
    value: Any = read_json(path, MAX_BYTES)
    if not isinstance(value, dict) or not all(isinstance(v, dict) for v in cast("dict[str, Any]", value).values()):
        raise InvalidInput(path, ["must be an object: project → object of fields"])
    return cast("dict[str, Metadata]", value)


def metadata_of(folder: Path, given: Metadata, draft: Draft) -> Metadata:
    """Return the project's own metadata with what the user gave over it. One that cannot be read is noted and left out."""
    path = folder / PROJECT / METADATA
    own: Any = {}
    if path.is_symlink() or (path.exists() and not path.is_file()):
        draft.note("bad_metadata", f"{PROJECT}/{METADATA}", "is not a regular file")
    elif path.exists():
        try:
            own = read_json(path, MAX_BYTES)
        except InvalidInput as error:
            draft.note("bad_metadata", f"{PROJECT}/{METADATA}", "; ".join(error.problems))
    if not isinstance(own, dict):
        draft.note("bad_metadata", f"{PROJECT}/{METADATA}", "is no object")
        own = {}
    return {**cast("dict[str, Any]", own), **given}


def price_of(metadata: Metadata, draft: Draft) -> dict[str, Any] | None:
    """Return the price; null where there is none that is usable, with the reason on the draft."""
    if metadata.get(PRICE) is None:
        draft.note("no_price", PRICE)
        return None
    currency = metadata.get("currency", "USD")
    try:
        found = parse_amount(metadata[PRICE], "money")
        if not (isinstance(currency, str) and re.fullmatch("[A-Z]{3}", currency)):
            raise ValueError("its currency is no code of three capital letters")
    except ValueError as error:
        draft.note("bad_price", PRICE, str(error))
        return None
    amount = money(found.middle)
    ends = {"min": money(found.low), "max": money(found.high)} if found.is_range else {}
    dollars = amount if currency == "USD" else None
    return {"amount": amount, "currency": currency, "usd": dollars, "basis": _basis(metadata, found, draft), **ends}


def hours_of(metadata: Metadata, draft: Draft) -> tuple[float, Basis] | None:
    """Return the hours that people took, and how they are known; null where they are not."""
    if metadata.get(HOURS) is None:
        draft.note("no_hours", HOURS)
        return None
    try:
        found = parse_amount(metadata[HOURS], "hours")
        if found.high > MOST_HOURS:
            raise ValueError(f"are more than {MOST_HOURS}")
    except ValueError as error:
        draft.note("bad_hours", HOURS, str(error))
        return None
    return float(found.middle), _basis(metadata, found, draft)


def label_of(metadata: Metadata, name: str, draft: Draft) -> str | None:
    """Return a category or subcategory; null where there is none that is usable."""
    value = metadata.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or unstorable(value):
        draft.note("bad_metadata", name, "is no text of 1 to 200 characters that can be stored")
        return None
    return value.strip()


def _basis(metadata: Metadata, found: Amount, draft: Draft) -> Basis:
    if found.is_range:
        return "midpoint"
    kind = metadata.get("price_kind", "reported")
    if not isinstance(kind, str) or kind not in _KINDS:
        draft.note("bad_metadata", "price_kind", f"is none of {', '.join(sorted(_KINDS))}; taken as reported")
        return "reported"
    return cast("Basis", _KINDS[kind])

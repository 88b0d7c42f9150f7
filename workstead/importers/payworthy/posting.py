"""The fields of a posting, whatever the source calls them, and which of them an item can do without."""

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import Filled, Loose, complaints
from workstead.importers.mapping import FieldMap, Rule, TableNumber
from workstead.importers.untrusted import unstorable

_PARTS = re.compile(r"[,;|]")


def _id(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _word(value: Any) -> Any:
    """``Client-Files`` and ``client files`` are one word."""
    return re.sub(r"[\s-]+", "_", value.strip().lower()) if isinstance(value, str) else value


def _words(value: Any) -> Any:
    if isinstance(value, str):
        value = _PARTS.split(value)
    if not isinstance(value, list):
        return cast("object", value)
    return [_word(part) for part in cast("list[Any]", value) if part != ""]


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in _PARTS.split(value) if part.strip()]
    return value


def _day(value: str) -> str:
    return date.fromisoformat(value.strip()[:10]).isoformat()


Short = Annotated[Filled, Field(max_length=200)]
Word = Annotated[str, BeforeValidator(_word), Field(pattern=r"^[a-z0-9][a-z0-9_.]{0,63}$")]
Path = Annotated[Filled, Field(max_length=1_000)]
Amount = Annotated[TableNumber, Field(ge=0, lt=Decimal(10) ** 15)]


class Posting(Loose):
    item_id: Annotated[Filled, BeforeValidator(_id), Field(max_length=256)]
    description: Filled
    pay_type: Annotated[Literal["fixed", "hourly"], BeforeValidator(_word)]
    title: Annotated[Filled, Field(max_length=1_000)] | None = None
    skills: Annotated[list[Short], BeforeValidator(_texts), Field(max_length=64)] = Field(default_factory=list[str])
    budget: Amount | None = None
    hourly_min: Amount | None = None
    hourly_max: Amount | None = None
    contract_value: Amount | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    duration: Short | None = None
    expertise: Short | None = None
    category: Short | None = None
    category_2: Short | None = None
    category_3: Short | None = None
    posted_at: Annotated[str, AfterValidator(_day)] | None = None
    needs: (
        Annotated[Literal["self_contained", "client_files", "client_systems", "medium"], BeforeValidator(_word)] | None
    ) = None
    text_kind: Annotated[Literal["original", "surrogate"], BeforeValidator(_word)] | None = None
    split: Annotated[list[Word], BeforeValidator(_words), Field(max_length=16)] = Field(default_factory=list[str])
    facts: Any = None
    facts_file: Path | None = None
    deliverable: Path | None = None
    """Folder or file."""


FIELDS = frozenset(Posting.model_fields)
REQUIRED = frozenset({"item_id", "description", "pay_type"})
_DEFAULTS: dict[str, Any] = {"deliverable": "deliverable"}
_ALSO = {
    "item_id": ["id", "folder"],
    "description": ["posting.md", "posting.txt"],
    "facts": ["facts.md", "facts.txt", "facts.json"],
}


def own_names(*, folders: bool) -> FieldMap:
    """Return the mapping of a source that calls the fields as we do, in a table or in ``posting.json`` and ``metadata.json``."""
    rules: dict[str, Rule] = {}
    for field in FIELDS:
        files = [f"/{file}/{field}" for file in ("posting.json", "metadata.json")]
        origin = [field, *files, *_ALSO.get(field, [])]
        default = _DEFAULTS.get(field) if folders else None
        rules[field] = Rule.model_validate({"from": origin, "default": default})
    return FieldMap(rules)


def posting_of(values: Mapping[str, Any], draft: Draft) -> Posting | None:
    """Check the fields. One that is not usable is left out and noted; without a required one there is no posting."""
    given = {name: value for name, value in values.items() if value is not None}
    bad = {n: "has a NUL or a lone surrogate" for n, v in given.items() if n != "facts" and unstorable(v)}
    try:
        posting = Posting.model_validate(given)
        if not bad:
            return posting
    except ValidationError as error:
        told = zip(error.errors(), complaints(error), strict=True)
        bad = {str(e["loc"][0]): what for e, (_, what) in told} | bad
    for name, what in bad.items():
        if name in REQUIRED:
            draft.quarantine("bad_item", name, what)
        else:
            draft.note("bad_field", name, what)
    if bad.keys() & REQUIRED:
        return None
    return Posting.model_validate({name: value for name, value in given.items() if name not in bad})

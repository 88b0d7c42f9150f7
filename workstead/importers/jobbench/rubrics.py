"""``RUBRICS.json``: a list of rubrics, each with a weight and criteria that must all hold; the order is the chain's."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import Filled, Loose, Number, complaints, plain
from workstead.importers.untrusted import parse_json, read_json
from workstead.task_dir import InvalidInput

FILE = "RUBRICS.json"
MAX_BYTES = 8 << 20


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Rubric(Loose):
    rubric: Filled
    weight: Annotated[Number, Field(ge=0, le=1_000_000_000)]
    criterion: Annotated[list[Filled], BeforeValidator(_as_list), Field(min_length=1, max_length=1_000)]
    """Older files have a single text."""


class Rubrics(Loose):
    rubrics: Annotated[
        list[Rubric],
        Field(min_length=1, max_length=1_000, validation_alias=AliasChoices("rubrics", "evaluation_rubrics")),
    ]


def read_rubrics(path: Path, draft: Draft) -> dict[str, Any] | None:
    """Return the rubrics in one form, whatever form they came in; None if unusable, with the reason on the draft."""
    if path.is_symlink():
        return None
    try:
        return _checked(read_json(path, MAX_BYTES), draft)
    except InvalidInput as error:
        draft.quarantine("bad_rubrics", FILE, "; ".join(error.problems))
    except OSError as error:
        draft.quarantine("bad_rubrics", FILE, error.strerror or "cannot be read")
    return None


def parse_rubrics(data: bytes, draft: Draft) -> dict[str, Any] | None:
    """Do the same with the text of a file."""
    try:
        return _checked(parse_json(data[:MAX_BYTES]), draft)
    except (ValueError, RecursionError) as error:
        draft.quarantine("bad_rubrics", FILE, f"is not JSON: {error}")
    return None


def _checked(value: Any, draft: Draft) -> dict[str, Any] | None:
    try:
        rubrics = Rubrics.model_validate(value).rubrics
    except ValidationError as error:
        for where, what in complaints(error):
            draft.quarantine("bad_rubrics", f"{FILE}#{where}", what)
        return None
    if not sum(r.weight for r in rubrics):
        draft.quarantine("bad_rubrics", FILE, "the weights add up to 0, so that there is nothing to reach")
    _duplicates(rubrics, draft)
    return {"rubrics": [_plain(r) for r in rubrics]}


def _plain(rubric: Rubric) -> dict[str, Any]:
    return {"rubric": rubric.rubric, "weight": plain(rubric.weight), "criterion": rubric.criterion}


def _duplicates(rubrics: list[Rubric], draft: Draft) -> None:
    for text, count in Counter(r.rubric.strip() for r in rubrics).items():
        if count > 1:
            draft.dispute("duplicate_rubric", FILE, f"{count} rubrics are: {text[:200]}")
    for i, rubric in enumerate(rubrics):
        if len(set(rubric.criterion)) != len(rubric.criterion):
            draft.note("duplicate_criterion", f"{FILE}#/rubrics/{i}/criterion")

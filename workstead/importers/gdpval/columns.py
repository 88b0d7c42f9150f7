"""The columns of the table. An early release has seven: no rubrics, no deliverables' addresses."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import Filled, Loose, Number, Text, complaints, plain
from workstead.importers.files import MAX_FILES
from workstead.importers.untrusted import parse_json

_Label = Annotated[str, Field(min_length=1, max_length=1_000)]
_Paths = Annotated[list[Annotated[str, Field(min_length=1, max_length=1_000)]], Field(max_length=MAX_FILES)]
_HASH = re.compile(r"[0-9a-f]{16,128}\Z")
MAX_RUBRICS = 1_000


class Item(Loose):
    task_id: Filled
    sector: _Label
    occupation: _Label
    prompt: Filled
    reference_files: _Paths | None = None
    reference_file_urls: list[str] | None = None
    reference_file_hf_uris: list[str] | None = None
    deliverable_files: _Paths | None = None
    deliverable_file_urls: list[str] | None = None
    deliverable_file_hf_uris: list[str] | None = None
    rubric_pretty: Text | None = None
    rubric_json: Text | None = None

    def addresses(self) -> dict[str, Any]:
        """Recorded, and never fetched."""
        return self.model_dump(include={n for n in type(self).model_fields if n.endswith(("_files", "_urls", "_uris"))})


class _Criterion(Loose):
    criterion: Filled
    score: Number


class _Criteria(Loose):
    listed: list[_Criterion] = Field(min_length=1, max_length=MAX_RUBRICS)


def shown(path: str, folder: str) -> str:
    """Return a path as a task has it: without the source's own folder and the hash below it."""
    parts = path.removeprefix(f"{folder}/").split("/")
    return "/".join(parts[1:] if len(parts) > 1 and _HASH.match(parts[0]) else parts)


def rubrics_of(text: str, draft: Draft) -> dict[str, Any] | None:
    """Return the rubrics as method ``rubric_chain`` reads them; null, with the reason on the draft: none can be had."""
    try:
        criteria = _Criteria.model_validate({"listed": parse_json(text.encode("utf-8", "replace"))}).listed
    except ValidationError as error:
        for where, what in complaints(error):
            draft.quarantine("bad_rubrics", f"rubric_json{where.removeprefix('/listed')}", what)
        return None
    except (ValueError, RecursionError) as error:
        draft.quarantine("bad_rubrics", "rubric_json", f"is not JSON: {error}")
        return None
    positive = [one for one in criteria if one.score > 0]
    if dropped := len(criteria) - len(positive):
        draft.dispute("dropped_criteria", "rubric_json", f"{dropped} criteria that take points away, or give none")
    if not sum((one.score for one in positive), Decimal(0)):
        draft.quarantine("bad_rubrics", "rubric_json", "the weights add up to 0, so that there is nothing to reach")
    rubrics = [{"rubric": c.criterion, "weight": plain(c.score), "criterion": [c.criterion]} for c in positive]
    return {"rubrics": rubrics}

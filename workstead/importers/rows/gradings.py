"""What grades a row: an answer of a known type, or rubrics in one of the ways that people write them."""

import re
from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, ValidationError

from workstead.importers.drafts import Draft
from workstead.importers.fields import Filled, Loose, Number, complaints, plain
from workstead.importers.rows.columns import AnswerType, Fields, as_list
from workstead.importers.untrusted import parse_json

_LINE = re.compile(r"\s*(?:[-*]\s+)?(?:\[(\d{1,9}(?:\.\d{1,6})?)\]\s*)?(.*\S)\s*\Z")


class _Rubric(Loose):
    criterion: Annotated[list[Filled], BeforeValidator(as_list), Field(min_length=1, max_length=1_000)]
    weight: Annotated[Number, Field(ge=0, le=1_000_000_000)] = Decimal(1)


class _Rubrics(Loose):
    rubrics: list[_Rubric] = Field(min_length=1, max_length=1_000)


def rubrics_of(given: Any, draft: Draft) -> dict[str, Any] | None:
    """Return rubrics as ``rubric_chain`` reads them; null, with the reason on the draft: they cannot be used.

    JSON (a value or its text): a list of ``{criterion, weight}``, ``{rubric, criterion: […], weight}``, ``{criterion, score}``
    or texts, bare or in ``{"rubrics": …}``. Other text: a criterion a line, ``[10] text`` with its weight.
    """
    try:
        found = _Rubrics.model_validate({"rubrics": [_one(part) for part in _parts(given)]}).rubrics
    except ValidationError as error:
        for where, what in complaints(error):
            draft.quarantine("bad_rubrics", f"rubric{where.removeprefix('/rubrics')}", what)
        return None
    except (ValueError, RecursionError) as error:
        draft.quarantine("bad_rubrics", "rubric", str(error))
        return None
    if not sum((r.weight for r in found), Decimal(0)):
        draft.quarantine("bad_rubrics", "rubric", "the weights add up to 0, so that there is nothing to reach")
    listed = [{"rubric": r.criterion[0], "weight": plain(r.weight), "criterion": r.criterion} for r in found]
    return {"rubrics": listed}


def _parts(given: Any) -> list[Any]:
    """Raises ValueError, RecursionError."""
    if isinstance(given, str) and given.lstrip().startswith(("[{", "[\n", '["', "{")):
        given = parse_json(given.encode("utf-8", "replace"))
    if isinstance(given, str):
        return [line for line in given.splitlines() if line.strip()]
    if isinstance(given, dict):
        given = cast("dict[str, Any]", given).get("rubrics")
    if not isinstance(given, list):
        raise ValueError("is neither a text nor a list of criteria")
    return cast("list[Any]", given)


def _one(part: Any) -> Any:
    if isinstance(part, str):
        match = _LINE.match(part)
        return {"criterion": part} if match is None or match[1] is None else _weighted(match[2], match[1])
    if not isinstance(part, dict):
        return cast("object", part)
    body = cast("dict[str, Any]", part)
    weight = next((body[name] for name in ("weight", "score", "points") if body.get(name) is not None), Decimal(1))
    return {"criterion": body.get("criterion", body.get("rubric")), "weight": weight}


def _weighted(text: str, weight: str) -> dict[str, Any]:
    return {"criterion": text, "weight": Decimal(weight)}


def answer_rule(fields: Fields, draft: Draft) -> tuple[dict[str, Any], Any] | None:
    """Return the rule of method ``exact`` and the expected value; null, with the reason on the draft: it cannot be used."""
    kind = fields.answer_type or ("choice" if fields.choices else _kind(fields.answer))
    try:
        value = _typed(kind, fields.answer)
    except ValueError as error:
        draft.quarantine("bad_answer", "answer", str(error))
        return None
    if (kind == "choice") != bool(fields.choices) or (fields.choices and value not in fields.choices):
        draft.quarantine("bad_answer", "answer", "a choice needs `choices`, of which the answer is one")
        return None
    rule: dict[str, Any] = {"id": "answer", "type": kind}
    if fields.choices:
        rule["choices"] = fields.choices
    if fields.tolerance is not None and kind in ("float", "list"):
        rule["tolerance"] = {"absolute": plain(fields.tolerance)}
    return rule, value


def _kind(answer: Any) -> AnswerType:
    if isinstance(answer, bool):
        return "bool"
    if isinstance(answer, int | Decimal):
        return "int" if isinstance(answer, int) else "float"
    return "list" if isinstance(answer, list) else "string"


def _typed(kind: AnswerType, answer: Any) -> Any:
    """Return an answer as its type has it; a table has everything as text. Raises ValueError."""
    if isinstance(answer, str) and kind in ("int", "float", "bool", "list"):
        answer = parse_json(answer.strip().lower().encode() if kind == "bool" else answer.encode("utf-8", "replace"))
    if isinstance(answer, Decimal):
        answer = plain(answer)
    number = isinstance(answer, int | float) and not isinstance(answer, bool)
    fits = {
        "int": number and float(answer).is_integer(),
        "float": number,
        "bool": isinstance(answer, bool),
        "list": isinstance(answer, list) and 0 < len(cast("list[Any]", answer)) <= 500,
        "string": isinstance(answer, str),
        "choice": isinstance(answer, str),
    }
    if not fits[kind]:
        raise ValueError(f"is no {kind}")
    return _plain_list(cast("list[Any]", answer)) if kind == "list" else cast("object", answer)


def _plain_list(values: list[Any]) -> list[Any]:
    if any(not isinstance(v, str | int | float | Decimal) for v in values):
        raise ValueError("a list has texts and numbers only")
    return [plain(v) if isinstance(v, Decimal) else v for v in values]

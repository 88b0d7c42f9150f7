"""What asking will take if every first answer fits: list prices, lengths of the texts, output assumed."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from service.domain.errors import Invalid
from service.domain.judging import JudgeSpec
from service.domain.models import TokenUsage
from service.lifecycle.estimates import ASSUMED_OUTPUT_TOKENS, CHARS_PER_TOKEN, money
from service.models.pricing import cost_of
from service.store import models
from service.store.database import Tx


async def estimate(
    tx: Tx, project_id: str, specs: Sequence[JudgeSpec], *, chars: int, questions: int, part: str
) -> dict[str, Any]:
    """Return {input_tokens, output_tokens, cost_usd, basis, parts}; ``chars`` and ``questions`` are of each model, ``part`` is
    what a model is called here. Raises Invalid ``unknown_model``, ``unknown_effort``."""
    reading, writing = round(chars / CHARS_PER_TOKEN), ASSUMED_OUTPUT_TOKENS * questions
    parts: list[dict[str, Any]] = []
    costs: list[Decimal | None] = []
    for one in specs:
        row = await models.find(tx, project_id, one.model)
        if row is None:
            raise Invalid("unknown_model", f"the project's catalogue has no model {one.model!r}", model=one.model)
        if one.effort is not None and one.effort not in row.spec.efforts:
            raise Invalid("unknown_effort", f"{one.model} takes no effort {one.effort!r}", efforts=row.spec.efforts)
        usd = cost_of(row.spec, TokenUsage(input_tokens=reading, output_tokens=writing), {}).usd
        costs.append(usd)
        parts.append({part: one.key, "cost_usd": None if usd is None else money(usd)})
    known = [usd for usd in costs if usd is not None]
    return {
        "input_tokens": reading * len(specs),
        "output_tokens": writing * len(specs),
        "cost_usd": money(sum(known, Decimal(0))) if len(known) == len(costs) else None,
        "basis": "list_price" if costs else "none",
        "parts": parts,
    }

"""What a scripted judge, rater or forecaster says, by what it is shown."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from service.models.scripted.conversation import Request
from service.models.scripted.scenario import Scenario

_NONCE = re.compile(r"<<<end ([0-9a-f]{32})>>>")
NONCE = "{nonce}"


def opinion(scenario: Scenario, request: Request) -> str | None:
    """Return the first opinion all of whose parts are in the request's texts, in this order; null where none fits.

    ``{nonce}`` in it becomes the number of the question's data blocks.
    """
    if not scenario.opinions:
        return None
    text = "\n".join(_texts(request.body))
    said = next((o.say for o in scenario.opinions if _all_in(o.seen, text)), None)
    # What was delivered may pretend to end a block; the question's own number stands more often.
    numbers = Counter(_NONCE.findall(text)).most_common(1)
    return said if said is None or not numbers else said.replace(NONCE, numbers[0][0])


def _all_in(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def _texts(body: object) -> Iterator[str]:
    """Yield every text of the body in its order, but for pictures."""
    stack: list[object] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            if not node.startswith("data:"):
                yield node
        elif isinstance(node, dict):
            stack += reversed(list(cast("dict[str, Any]", node).values()))
        elif isinstance(node, list):
            stack += reversed(cast("list[Any]", node))

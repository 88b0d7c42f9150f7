"""What a provider refuses in a conversation with a computer tool: entries, betas, results that are not as its API says.

Other conversations are left alone: whatever agents send there, tests of theirs decide.
"""

from collections.abc import Callable, Mapping
from typing import Any

from service.models.scripted.strict import generate, messages, responses
from service.models.scripted.strict.wrong import Wrong

_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, str]], None]] = {
    "messages": messages.check,
    "responses": responses.check,
    "generate": generate.check,
}


def wrong(kind: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return why the API would answer 400; None where it would not."""
    try:
        if (check := _CHECKS.get(kind)) is not None:
            check(body, headers)
    except Wrong as error:
        return str(error)
    return None

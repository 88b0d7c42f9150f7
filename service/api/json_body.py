"""Request bodies as JSON, strictly: bounded depth, no NaN, nothing that the database could not hold."""

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, Never

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.api.problems import BodyRefused

MAX_DEPTH = 64
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
_SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def parse(body: bytes) -> Any:
    """Parse ``body``. Raises BodyRefused for what is too deep, not UTF-8, not finite, NUL or a lone surrogate."""
    _check_depth(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyRefused(422, "json_not_utf8", "the body is not UTF-8") from error
    value = json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_int=_bounded_int,
        parse_float=_finite,
        object_pairs_hook=_unique,
    )
    if _SUSPICIOUS.search(body):
        _check_text(value)
    return value


def _check_depth(body: bytes) -> None:
    depth = 0
    for match in _BRACKETS.finditer(_STRINGS.sub(b"", body)):
        depth += 1 if match.group() in b"[{" else -1
        if depth > MAX_DEPTH:
            raise BodyRefused(422, "json_too_deep", f"the body is nested deeper than {MAX_DEPTH} levels")


def _refuse_constant(name: str) -> Never:
    raise BodyRefused(422, "json_not_finite", f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise BodyRefused(422, "json_number_too_large", "an integer has more than 20 digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_constant(digits[:20])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise BodyRefused(422, "json_duplicate_key", "an object has the same key twice")
    return value


def _check_text(value: Any) -> None:
    dumped = json.dumps(value, ensure_ascii=False)
    if "\\u0000" in dumped.replace("\\\\", "") or any(0xD800 <= ord(c) <= 0xDFFF for c in dumped):
        raise BodyRefused(422, "json_bad_text", "a string contains NUL or a lone surrogate")


class _StrictRequest(Request):
    async def json(self) -> Any:
        return parse(await self.body())


class StrictRoute(APIRoute):
    """Route whose JSON bodies go through :func:`parse`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict

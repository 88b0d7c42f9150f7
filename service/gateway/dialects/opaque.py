"""A private protocol (NEEDS C8): bytes pass as they are; calls and time are counted, tokens only where the model's
catalogue entry says by JSONPath where its answers tell them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonpath

from service.domain.models import Dialect, ModelSpec, OpaqueUsage, TokenUsage
from service.gateway.dialects import refusals
from service.gateway.dialects.contract import Answer, BadBody, Meter, Policy, RequestFacts, Route, ServerTool
from service.gateway.dialects.meters import PassingMeter, parse
from service.gateway.dialects.reading import count

_PATH = re.compile(r"/opaque((?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~:@!$&'()*+,;=-]{1,200}){1,16})")
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH"})
_READ_LIMIT = 1 << 20
"""A path with a wildcard looks at every value."""


def check_path(path: str) -> None:
    """Raises ValueError where ``path`` is no JSONPath."""
    try:
        jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(str(error)) from error


class OpaqueRules:
    name = Dialect.OPAQUE

    def route(self, method: str, path: str, query: Mapping[str, str]) -> Route | None:
        found = _PATH.fullmatch(path) if method in _METHODS else None
        if found is None:
            return None
        return Route(self.name, "opaque", found[1], dict(query), json_body=False)

    def read(self, route: Route, body: Mapping[str, Any]) -> RequestFacts:
        del route
        if body:
            raise BadBody("the body of a private protocol is not read")
        return RequestFacts(model=None, streaming=False, max_output_tokens=None)

    def rewrite(
        self, route: Route, body: dict[str, Any], policy: Policy
    ) -> tuple[dict[str, Any], Sequence[ServerTool]]:
        del route, policy
        return body, ()

    def credential_headers(self, secret: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {secret}"}

    def meter(
        self, route: Route, *, streaming: bool, content_type: str, content_encoding: str, spec: ModelSpec
    ) -> Meter:
        del route, streaming, content_type
        return PassingMeter(OpaqueTally(spec.opaque_usage), content_encoding, _READ_LIMIT)

    def refusal(self, route: Route | None, status: int, type_: str, message: str) -> tuple[Mapping[str, str], bytes]:
        del route
        return refusals.headers(status), refusals.body({"error": {"type": type_, "message": message}})


class OpaqueTally:
    def __init__(self, paths: OpaqueUsage | None) -> None:
        self._paths = paths or OpaqueUsage()
        self._input: int | None = None
        self._output: int | None = None
        self._started = self._whole = False

    def event(self, name: bytes, data: bytes) -> None:
        del name
        self._started = True
        self._look(parse(data))

    def body(self, value: object) -> None:
        self._whole = value is not None
        self._look(value)

    def started(self) -> bool:
        return self._started

    def answer(self) -> Answer:
        """Complete is only what parses whole: a private stream has no end that we know."""
        told = (self._paths.input_tokens is None or self._input is not None) and (
            self._paths.output_tokens is None or self._output is not None
        )
        known = told and (self._input is not None or self._output is not None)
        usage = TokenUsage(input_tokens=self._input or 0, output_tokens=self._output or 0) if known else None
        return Answer(usage=usage, complete=self._whole)

    def _look(self, value: object) -> None:
        if value is None:
            return
        self._input = _find(self._paths.input_tokens, value, self._input)
        self._output = _find(self._paths.output_tokens, value, self._output)


def _find(path: str | None, value: Any, before: int | None) -> int | None:
    """Return the last number that the path finds; what was known before, where it finds none."""
    if path is None:
        return None
    try:
        found = [number for match in jsonpath.findall(path, value) if (number := count(match)) is not None]
    except (jsonpath.JSONPathError, RecursionError):
        return before
    return found[-1] if found else before

"""Reads a program's output by the mapping of its manifest. Paths have no filters, so no input makes one slow."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import jsonpath

from service.domain.agents import ScaffoldManifest
from service.domain.errors import Invalid
from service.domain.events import EventType
from service.domain.json_objects import parse_object
from service.domain.mappings import Condition, MappingRule
from service.domain.models import TokenUsage
from service.scaffolds import reading
from service.scaffolds.contract import AgentReport, Translated

MOST_PER_LINE = 64
MOST_JSON_BYTES = 16 << 20
"""Of the one object of parser ``json``."""
_TOKENS = tuple(TokenUsage.model_fields)
_STATUSES = ("success", "error", "limit")
_TEXTS = frozenset({"text", "id", "name", "reason", "status"})


def check_mapping(manifest: ScaffoldManifest) -> None:
    """Refuse paths that cannot be compiled. Raises Invalid ``bad_json_path``."""
    for i, rule in enumerate(manifest.mapping):
        paths = [c.path for c in rule.when] + [v for v in rule.fields.values() if _is_path(v)]
        for path in [*paths, *([rule.each] if rule.each else [])]:
            try:
                _compiled(path)
            except (jsonpath.JSONPathError, ValueError) as error:
                raise Invalid("bad_json_path", f"mapping[{i}]: {path!r}: {str(error).splitlines()[0]}") from None


@cache
def _compiled(path: str) -> Any:
    if "?" in path or "(" in path:
        raise ValueError("filters and functions are not allowed")
    return jsonpath.compile(path)


def first(path: str, value: Any) -> tuple[bool, Any]:
    """Return whether there is a match of ``path``, and the first one."""
    if not isinstance(value, dict | list):  # the library would read a text as a document of its own
        return (True, value) if path == "$" else (False, None)
    match: Any = next(iter(_compiled(path).finditer(value)), None)
    return (False, None) if match is None else (True, match.obj)


class MappedReader:
    """A LineParser made of data."""

    def __init__(self, manifest: ScaffoldManifest) -> None:
        self._rules = manifest.mapping
        self._format = manifest.parser
        self._report = AgentReport()
        self._gathered = bytearray()

    def line(self, stream: str, text: bytes) -> Sequence[Translated]:
        if stream != "stdout":
            return []
        value = self._value(text)
        return [] if value is None else list(self._translate(value))[:MOST_PER_LINE]

    def report(self) -> AgentReport:
        return self._report

    def _value(self, text: bytes) -> Mapping[str, Any] | None:
        if self._format == "text":
            return {"line": text.decode(errors="replace")}
        if self._format == "jsonl":
            return parse_object(text)
        # One object over many lines: tried whenever it may have come to its end.
        if len(self._gathered) + len(text) > MOST_JSON_BYTES or (not self._gathered and not text.startswith(b"{")):
            self._gathered.clear()
            return None
        self._gathered += text + b"\n"
        found = parse_object(bytes(self._gathered)) if text.rstrip().endswith(b"}") else None
        if found is not None:
            self._gathered.clear()
        return found

    def _translate(self, value: Mapping[str, Any]) -> Iterator[Translated]:
        for rule in self._rules:
            for one in self._subjects(rule, value):
                if all(holds(condition, one) for condition in rule.when):
                    yield self._event(rule, one)

    @staticmethod
    def _subjects(rule: MappingRule, value: Mapping[str, Any]) -> list[Any]:
        if rule.each is None:
            return [value]
        found, items = first(rule.each, value)
        return cast("list[Any]", items)[:MOST_PER_LINE] if found and isinstance(items, list) else []

    def _event(self, rule: MappingRule, value: Any) -> Translated:
        payload: dict[str, Any] = {}
        for name, template in rule.fields.items():
            found, got = first(template, value) if _is_path(template) else (True, template.replace("$$", "$", 1))
            if found:
                payload[name] = _as_text(got) if name in _TEXTS else got
        if rule.emit == EventType.AGENT_USAGE:
            payload = _usage(payload)
        self._note(rule.emit, payload)
        return Translated(rule.emit, payload)

    def _note(self, kind: str, payload: Mapping[str, Any]) -> None:
        if kind == EventType.AGENT_FINAL:
            status = payload.get("status")
            self._report = AgentReport(
                status if status in _STATUSES else None, reading.text(payload.get("text")),
                reading.text(payload.get("reason")), self._report.usage, self._report.cost_usd,
            )  # fmt: skip
        elif kind == EventType.AGENT_USAGE:
            added = TokenUsage(**{name: payload[name] for name in _TOKENS})
            before = self._report
            total = added if before.usage is None else before.usage.plus(added)
            cost = reading.dollars(payload.get("cost_usd"))
            both = (before.cost_usd or 0) + cost if cost is not None else before.cost_usd
            self._report = AgentReport(before.status, before.text, before.reason, total, both)


def holds(condition: Condition, value: Any) -> bool:
    found, got = first(condition.path, value)
    if condition.absent:
        return not found
    if not found:
        return False
    given = condition.model_fields_set
    checks = (
        "equals" not in given or _same(got, condition.equals),
        not condition.one_of or any(_same(got, one) for one in condition.one_of),
        condition.starts_with is None or (isinstance(got, str) and got.startswith(condition.starts_with)),
        condition.contains is None or (isinstance(got, str) and condition.contains in got),
    )
    return all(checks)


def _same(a: Any, b: Any) -> bool:
    return (type(a) is type(b) and a == b) or (isinstance(a, int | float) and isinstance(b, int | float) and not
                                             isinstance(a, bool) and not isinstance(b, bool) and a == b)  # fmt: skip


def _is_path(template: str) -> bool:
    return template.startswith("$") and not template.startswith("$$")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _usage(payload: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: reading.number(payload.get(name)) for name in _TOKENS}
    return {**counts, "cost_usd": payload["cost_usd"]} if "cost_usd" in payload else counts

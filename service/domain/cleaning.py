"""Makes untrusted text and JSON storable: PostgreSQL refuses NUL, lone surrogates, NaN. What was changed is flagged."""

import json
import math
from typing import Any, cast

MAX_DEPTH = 32
"""Deepest nesting of a payload; what lies deeper is replaced by ``CUT``."""
CUT = "…"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MAX_INT = 1 << 63


def clean_text(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8; return the text and whether NUL or invalid bytes (surrogates included) had to be replaced."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").replace("\0", _REPLACEMENT), True
    return (text.replace("\0", _REPLACEMENT), True) if "\0" in text else (text, False)


def clean_str(text: str) -> tuple[str, bool]:
    """Replace NUL and lone surrogates in ``text``; tell whether there were any."""
    clean = text.replace("\0", _REPLACEMENT)
    try:
        clean.encode()
    except UnicodeEncodeError:
        clean = "".join(_REPLACEMENT if 0xD800 <= ord(c) <= 0xDFFF else c for c in clean)
    return clean, clean != text


def encode_payload(payload: dict[str, Any]) -> bytes:
    """Return ``payload`` as JSON that PostgreSQL takes; ``"lossy": true`` is added where something was replaced."""
    encoded = _encode_as_is(payload)
    if encoded is not None:
        return encoded
    cleaner = _Cleaner()
    clean = cleaner.clean(payload, 0)
    if cleaner.changed:
        clean = {**clean, "lossy": True}
    return json.dumps(clean, ensure_ascii=False, separators=(",", ":")).encode()


def clean_json(value: Any) -> Any:
    """Return ``value`` as PostgreSQL's jsonb takes it; what it cannot take is replaced."""
    return _Cleaner().clean(value, 0)


def is_clean(value: Any) -> bool:
    """Tell whether :func:`clean_json` would leave ``value`` as it is."""
    cleaner = _Cleaner()
    cleaner.clean(value, 0)
    return not cleaner.changed


def _encode_as_is(payload: dict[str, Any]) -> bytes | None:
    """The fast path: nearly every payload is clean. Null if it is not, or might not be."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        encoded = text.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    suspect = "\\u0000" in text or text.count("{") + text.count("[") > MAX_DEPTH
    return None if suspect else encoded


class _Cleaner:
    def __init__(self) -> None:
        self.changed = False

    def clean(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if -_MAX_INT <= value < _MAX_INT else self._replaced(CUT if value > 0 else f"-{CUT}")
        if isinstance(value, float):
            return value if math.isfinite(value) else self._replaced(None)
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if depth >= MAX_DEPTH:
            return self._replaced(CUT)
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            return {self._text(str(key)): self.clean(item, depth + 1) for key, item in items}
        if isinstance(value, list | tuple):
            return [self.clean(item, depth + 1) for item in cast("list[Any]", value)]
        return self._text(str(value))

    def _text(self, text: str) -> str:
        clean, changed = clean_str(text)
        self.changed |= changed
        return clean

    def _replaced(self, value: Any) -> Any:
        self.changed = True
        return value

"""What is kept of a payload beside the actions that it was read as."""

import json
from collections.abc import Mapping
from typing import Any, cast

from service.domain.cleaning import clean_json
from service.domain.desktop import Raw
from service.domain.limits import KIB

MAX_RAW_BYTES = 8 * KIB
_LONG = 256
_MOST_ITEMS = 64
_MARK = " …[{} characters cut]"


def kept(vocabulary: str, payload: Mapping[str, Any]) -> Raw:
    """Return the payload whole up to 8 KiB, else with its long texts cut and marked."""
    whole = cast(dict[str, Any], clean_json(dict(payload)))
    if _size(whole) <= MAX_RAW_BYTES:
        return Raw(vocabulary=vocabulary, payload=whole)
    shorter = cast(dict[str, Any], _shortened(whole))
    if _size(shorter) <= MAX_RAW_BYTES:
        return Raw(vocabulary=vocabulary, payload=shorter)
    return Raw(vocabulary=vocabulary, payload={"cut": _cut(json.dumps(whole, ensure_ascii=True), MAX_RAW_BYTES // 4)})


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value, _LONG)
    if isinstance(value, Mapping):
        items = list(cast(Mapping[str, Any], value).items())[:_MOST_ITEMS]
        return {_cut(key, _LONG): _shortened(inner) for key, inner in items}
    if isinstance(value, list):
        return [_shortened(inner) for inner in cast(list[Any], value)[:_MOST_ITEMS]]
    return value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _MARK.format(len(text) - most)

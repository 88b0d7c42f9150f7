"""Errors of ours in a dialect's own shape; every body carries our stable type as well."""

import json
from collections.abc import Mapping

_FINAL = frozenset({400, 401, 403, 404, 413, 426})


def headers(status: int) -> Mapping[str, str]:
    """Return the headers of a refusal; the official SDKs take ``x-should-retry`` as the last word."""
    final = {"x-should-retry": "false"} if status in _FINAL else {}
    return {"content-type": "application/json", **final}


def body(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
